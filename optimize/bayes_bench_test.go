// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"testing"

	"diwan.dev/diwan/optimize"
)

// BenchmarkGP measures suggestions in ten dimensions while a search goes on, so
// that what is remembered between them counts once.
func BenchmarkGP(b *testing.B) {
	var parameters []optimize.Parameter
	for i := range 5 {
		parameters = append(parameters, optimize.Double(fmt.Sprint("x", i), 1e-5, 1).Log(), optimize.Int(fmt.Sprint("n", i), 1, 100))
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		b.Fatal(err)
	}
	loss := func(p optimize.Point) float64 {
		sum := 0.0
		for i, u := range space.Unit(p) {
			sum += float64(i+1) * (u - 0.3) * (u - 0.3)
		}
		return sum
	}
	for _, past := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint("past=", past), func(b *testing.B) {
			sampler, err := optimize.NewGP(space, 1, optimize.DefaultGPConfig())
			if err != nil {
				b.Fatal(err)
			}
			h, random := optimize.NewHistory(space), optimize.NewRandom(1)
			add := func(s optimize.Sampler) {
				p, err := s.Sample(b.Context(), h)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Tell(h.Add(p), optimize.Values(loss(p))); err != nil {
					b.Fatal(err)
				}
			}
			for range past {
				add(random)
			}
			for b.Loop() {
				add(sampler)
			}
		})
	}
}
