// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"testing"

	"diwan.dev/diwan/optimize"
)

// BenchmarkTPE measures one suggestion and its result, in spaces of continuous
// parameters, integers and texts, after so many others.
func BenchmarkTPE(b *testing.B) {
	for _, name := range []string{"tpe", "multivariate-tpe"} {
		for _, dimensions := range []int{5, 20, 100} {
			for _, past := range []int{100, 1000, 10_000} {
				b.Run(fmt.Sprintf("%s/dim=%d/past=%d", name, dimensions, past), func(b *testing.B) {
					benchmarkTPE(b, name, dimensions, past)
				})
			}
		}
	}
}

func benchmarkTPE(b *testing.B, name string, dimensions, past int) {
	var parameters []optimize.Parameter
	for i := range dimensions {
		name := fmt.Sprint("p", i)
		p := optimize.Double(name, 0, 1)
		switch i % 5 {
		case 3:
			p = optimize.Int(name, 1, 50)
		case 4:
			p = optimize.Categorical(name, "a", "b", "c")
		}
		parameters = append(parameters, p)
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		b.Fatal(err)
	}
	sampler, err := optimize.New(name, nil, optimize.Problem{Space: space, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	h := optimize.NewHistory(space)
	step := func(s optimize.Sampler) {
		p, err := s.Sample(b.Context(), h)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Tell(h.Add(p), optimize.Values(p.Float("p0")-p.Float("p1"))); err != nil {
			b.Fatal(err)
		}
	}
	for range past {
		step(optimize.NewRandom(1))
	}
	step(sampler)
	b.ReportAllocs()
	for b.Loop() {
		step(sampler)
	}
}
