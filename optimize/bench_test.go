// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"testing"

	"diwan.dev/diwan/optimize"
)

// BenchmarkSample measures one suggestion in a space of twenty parameters,
// half of them integers, after so many others.
func BenchmarkSample(b *testing.B) {
	var parameters []optimize.Parameter
	for i := range 10 {
		parameters = append(parameters, optimize.Double(fmt.Sprint("x", i), 1e-5, 1).Log(), optimize.Int(fmt.Sprint("n", i), 1, 100))
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"random", "sobol"} {
		for _, past := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("%s/past=%d", name, past), func(b *testing.B) {
				sampler, err := optimize.New(name, nil, optimize.Problem{Space: space, Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				h := optimize.NewHistory(space, optimize.Minimize)
				for range past {
					p, err := sampler.Sample(b.Context(), h)
					if err != nil {
						b.Fatal(err)
					}
					h.Add(p)
				}
				for b.Loop() {
					if _, err := sampler.Sample(b.Context(), h); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
