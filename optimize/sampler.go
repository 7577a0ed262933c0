// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"

	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// Sampler suggests points.
type Sampler interface {
	// Sample returns the next point after the suggestions in h, with index
	// h.Len(), and does not change h. It is a pure function of h and of the
	// sampler's configuration; a sampler may cache earlier calls only to be
	// faster. It does not depend on the order in which results were told,
	// which is unknown after a restart.
	//
	// The point satisfies the constraints of the space. In a finite space it
	// is one that h does not contain. When there is none left, the error is
	// [ErrExhausted].
	//
	// Several goroutines may call it at once.
	Sample(ctx context.Context, h *History) (Point, error)
}

// ErrExhausted says that every point of a finite space was suggested.
var ErrExhausted = errors.New("search space is exhausted: every point was suggested")

// draws is how many random points are tried where proposals are not new.
const draws = 100

// novel returns the first of some proposals that satisfies the constraints and
// that h does not contain. Where there is none, it is a random point, or in a
// finite space any other.
func novel(h *History, attempts int, propose func() Point) (Point, error) {
	if err := h.space.check(); err != nil {
		return Point{}, err
	}
	if exhausted(h) {
		return Point{}, ErrExhausted
	}
	fresh := func(p Point) bool { return !h.Contains(p) && h.space.Feasible(p) }
	for range attempts {
		if p := propose(); fresh(p) {
			return p, nil
		}
	}
	numbers := random.New(0, uint64(h.Len()))
	if p, ok := h.space.draw(numbers, draws, fresh); ok {
		return p, nil
	}
	if size, finite := h.space.Size(); finite {
		return unseen(h, numbers.Uint64()%size)
	}
	for _, wanted := range []func(Point) bool{fresh, h.space.Feasible} {
		if p, ok := h.space.draw(numbers, searched, wanted); ok {
			return p, nil
		}
	}
	return Point{}, fmt.Errorf("cannot sample: of %d random points, %w", searched, ErrInfeasible)
}

// unseen returns the point at rank n of a finite space if h does not contain
// it, and otherwise the first after it, going round, that h does not contain.
func unseen(h *History, n uint64) (Point, error) {
	size, _ := h.space.Size()
	if exhausted(h) {
		return Point{}, ErrExhausted
	}
	for {
		p := h.space.At(n % size)
		if !h.Contains(p) {
			return p, nil
		}
		n++
	}
}

// exhausted reports whether h contains every point of a finite space.
func exhausted(h *History) bool {
	size, finite := h.space.Size()
	return finite && uint64(h.Distinct()) >= size
}

// NewRandom returns the sampler that draws each point from the distributions
// of its parameters. Each index has its own random numbers, so a point does
// not depend on the history.
func NewRandom(seed uint64) Sampler { return randomSampler{seed} }

type randomSampler struct{ seed uint64 }

func (r randomSampler) Sample(ctx context.Context, h *History) (Point, error) {
	numbers := random.New(r.seed, uint64(h.Len()))
	p, err := novel(h, draws, func() Point { return randomPoint(h.space, numbers) })
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// randomPoint draws a point from the distributions of its parameters.
func randomPoint(s *Space, numbers *random.Stream) Point {
	u := make([]float64, s.Len())
	for i := range u {
		u[i] = numbers.Float()
	}
	return s.Quantile(u)
}

func randomAlgorithm() maker {
	return maker{
		settings: []string{randomState},
		build: func(_ *settings.Reader, p Problem) (Sampler, error) {
			return NewRandom(p.Seed), nil
		},
	}
}
