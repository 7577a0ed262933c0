// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
)

// Sampler suggests points.
type Sampler interface {
	// Sample returns the point that follows the suggestions of h, that with
	// index h.Len(), and does not change h. It is a pure function of h and of
	// what the sampler was made with; what a sampler remembers from earlier
	// calls may make it faster, and nothing else.
	//
	// In a finite space the point is one that h does not contain. When there
	// is none left, the error is [ErrExhausted].
	//
	// Several goroutines may call it at once.
	Sample(ctx context.Context, h *History) (Point, error)
}

// ErrExhausted says that every point of a finite space was suggested.
var ErrExhausted = errors.New("search space is exhausted: every point of it was suggested")

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
