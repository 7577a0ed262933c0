// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"

	"diwan.dev/diwan/optimize/internal/random"
)

// NewRandom returns the sampler that draws each point from the distributions
// of its parameters. Each index has random numbers of its own, so that a point
// does not depend on how the search came to it.
func NewRandom(seed uint64) Sampler { return randomSampler{seed} }

type randomSampler struct{ seed uint64 }

func (r randomSampler) Sample(ctx context.Context, h *History) (Point, error) {
	numbers := random.New(r.seed, uint64(h.Len()))
	u := make([]float64, h.space.Len())
	p, err := novel(h, draws, func() Point {
		for i := range u {
			u[i] = numbers.Float()
		}
		return h.space.Quantile(u)
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

func randomAlgorithm() maker {
	return maker{
		settings: []string{randomState},
		build: func(_ *settings, p Problem) (Sampler, error) {
			return NewRandom(p.Seed), nil
		},
	}
}
