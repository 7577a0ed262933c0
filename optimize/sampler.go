// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"

	"diwan.dev/diwan/optimize/internal/random"
)

// Sampler suggests points.
type Sampler interface {
	// Sample returns the point that follows the suggestions of h, that with
	// index h.Len(), and does not change h. It is a pure function of h and of
	// what the sampler was made with; what a sampler remembers from earlier
	// calls may make it faster, and nothing else. It does not depend on the
	// order in which results were told, which is not known after a restart.
	//
	// The point satisfies the constraints of the space. In a finite space it
	// is one that h does not contain. When there is none left, the error is
	// [ErrExhausted].
	//
	// Several goroutines may call it at once.
	Sample(ctx context.Context, h *History) (Point, error)
}

// ErrExhausted says that every point of a finite space was suggested.
var ErrExhausted = errors.New("search space is exhausted: every point of it was suggested")

// draws is how many random points are tried where proposals are not new.
const draws = 100

// novel returns the first of some proposals that satisfies the constraints and
// that h does not contain. Where there is none, it is a random point, or in a
// finite space any other.
func novel(h *History, attempts int, propose func() Point) (Point, error) {
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
