// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/optimizetest"
)

func TestTPE(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
		c := optimize.DefaultUnivariateTPEConfig()
		c.Startup = 3
		return optimize.NewTPE(space, seed, c)
	}, Objectives: 3})
}

func TestMultivariateTPE(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
		c := optimize.DefaultTPEConfig()
		c.Startup = 3
		return optimize.NewTPE(space, seed, c)
	}, Objectives: 3})
}
