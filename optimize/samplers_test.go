// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
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
