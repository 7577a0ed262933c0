// SPDX-License-Identifier: Apache-2.0

package optimize

import "context"

// NewRandom returns the sampler that draws each point from the distributions
// of its parameters. Each index has random numbers of its own, so that a point
// does not depend on how the search came to it.
func NewRandom(seed uint64) Sampler { return random{seed} }

type random struct{ seed uint64 }

// draws is how often a point is drawn anew because the history contains it.
// After that nearly everything likely is in the history, and any point that is
// not will do.
const draws = 100

func (r random) Sample(ctx context.Context, h *History) (Point, error) {
	if exhausted(h) {
		return Point{}, ErrExhausted
	}
	size, finite := h.space.Size()
	numbers := newStream(r.seed, uint64(h.Len()))
	u := make([]float64, h.space.Len())
	for range draws {
		for i := range u {
			u[i] = numbers.float()
		}
		p := h.space.Quantile(u)
		if !finite || !h.Contains(p) {
			return p, ctx.Err()
		}
	}
	return unseen(h, numbers.next()%size)
}
