// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/optimizetest"
)

func TestHalton(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{New: optimize.NewHalton, IgnoresResults: true})
}

func TestPlainHalton(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New:            func(space *optimize.Space, _ uint64) (optimize.Sampler, error) { return optimize.NewPlainHalton(space) },
		IgnoresResults: true, IgnoresSeed: true,
	})
}

// small populations bring the samplers past their random start within the few
// trials of the suite.

func TestEvolution(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultEvolutionConfig()
			c.Population, c.Sample = 6, 3
			return optimize.NewEvolution(space, seed, c)
		},
		Objectives: 3,
	})
}

func TestNSGA2(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultNSGA2Config()
			c.Population = 4
			return optimize.NewNSGA2(space, seed, c)
		},
		Objectives: 3,
	})
}

func TestCMAES(t *testing.T) {
	t.Parallel()
	for _, restart := range []string{"none", "ipop", "bipop"} {
		t.Run(restart, func(t *testing.T) {
			t.Parallel()
			optimizetest.Run(t, optimizetest.Subject{
				New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
					c := optimize.DefaultCMAESConfig()
					c.Restart, c.Separable = restart, restart == "bipop"
					return optimize.NewCMAES(space, seed, c)
				},
			})
		})
	}
}

func TestPBT(t *testing.T) {
	t.Parallel()
	for name, resample := range map[string]float64{"Perturb": -1, "Resample": 0.25} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			optimizetest.Run(t, optimizetest.Subject{
				New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
					return optimize.NewPBT(space, seed, optimize.PBTConfig{Population: 4, Truncation: 0.4, Resample: resample})
				},
				Repeats: true,
			})
		})
	}
}
