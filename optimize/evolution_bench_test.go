// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"testing"

	"diwan.dev/diwan/optimize"
)

// BenchmarkEvolve measures a suggestion and its result after so many others, of
// the samplers that evolve a population, on a shifted sphere.
func BenchmarkEvolve(b *testing.B) {
	for _, name := range []string{"cmaes", "nsga2", "regularized-evolution", "halton"} {
		for _, parameters := range []int{5, 20, 100} {
			for _, past := range []int{100, 1000, 10_000} {
				for _, parallel := range []int{1, 10} {
					b.Run(fmt.Sprintf("%s/parameters=%d/past=%d/parallel=%d", name, parameters, past, parallel), func(b *testing.B) {
						benchmarkEvolve(b, name, parameters, past, parallel)
					})
				}
			}
		}
	}
}

func benchmarkEvolve(b *testing.B, name string, parameters, past, parallel int) {
	var list []optimize.Parameter
	for i := range parameters {
		list = append(list, optimize.Double(fmt.Sprint("x", i), -5, 5))
	}
	space, err := optimize.NewSpace(list...)
	if err != nil {
		b.Fatal(err)
	}
	sampler, err := optimize.New(name, nil, optimize.Problem{Space: space, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	h := optimize.NewHistory(space)
	step := func() {
		p, err := sampler.Sample(b.Context(), h)
		if err != nil {
			b.Fatal(err)
		}
		h.Add(p)
		i := h.Len() - parallel // the oldest pending ends first
		if i < 0 {
			return
		}
		loss := 0.0
		for k := range parameters {
			x := h.Trial(i).Point.Float(list[k].Name) - 1
			loss += x * x * float64(k+1)
		}
		if err := h.Tell(i, optimize.Values(loss)); err != nil {
			b.Fatal(err)
		}
	}
	for range past {
		step()
	}
	for b.Loop() {
		step()
	}
}
