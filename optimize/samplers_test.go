// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/optimizetest"
)

func TestRandom(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New:            func(_ *optimize.Space, seed uint64) (optimize.Sampler, error) { return optimize.NewRandom(seed), nil },
		IgnoresResults: true,
	})
}

func TestGrid(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New:    func(space *optimize.Space, _ uint64) (optimize.Sampler, error) { return optimize.NewGrid(space) },
		Finite: true, IgnoresResults: true, IgnoresSeed: true,
	})
}

func TestShuffledGrid(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{New: optimize.NewShuffledGrid, Finite: true, IgnoresResults: true})
}

func TestSobol(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{New: optimize.NewSobol, IgnoresResults: true})
}

func TestPlainSobol(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New:            func(space *optimize.Space, _ uint64) (optimize.Sampler, error) { return optimize.NewPlainSobol(space) },
		IgnoresResults: true, IgnoresSeed: true,
	})
}

func TestAuto(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultAutoConfig()
			c.Modelled, c.Parameters = 15, 4 // so that each sampler has its turn
			return optimize.NewAuto(space, seed, optimize.Budget{}, c)
		},
		Objectives: 4,
	})
}

// TestMostParameters checks that sequences cover as many parameters as they say.
func TestMostParameters(t *testing.T) {
	t.Parallel()
	for _, sequence := range []struct {
		name string
		most int
		make func(*optimize.Space, uint64) (optimize.Sampler, error)
	}{{"Sobol", optimize.MaxSobol, optimize.NewSobol}, {"Halton", optimize.MaxHalton, optimize.NewHalton}} {
		for n := sequence.most; n <= sequence.most+1; n++ {
			parameters := make([]optimize.Parameter, n)
			for i := range parameters {
				parameters[i] = optimize.Double(fmt.Sprint("x", i), 0, 1)
			}
			space, err := optimize.NewSpace(parameters...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sequence.make(space, 1); (err == nil) != (n <= sequence.most) {
				t.Errorf("%s sequence of %d parameters: %v", sequence.name, n, err)
			}
		}
	}
}

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
