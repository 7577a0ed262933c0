// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"

	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// NewGrid returns the sampler that visits every point of a finite space, in
// the order of their ranks: as a nested loop does, the last parameter changing
// fastest.
func NewGrid(space *Space) (Sampler, error) {
	if err := checkGrid(space); err != nil {
		return nil, err
	}
	return grid{order: func(n uint64) uint64 { return n }}, nil
}

// NewShuffledGrid returns the sampler that visits every point of a finite
// space, in an order that the seed determines. It is the better choice when
// the search may end before the grid does.
func NewShuffledGrid(space *Space, seed uint64) (Sampler, error) {
	if err := checkGrid(space); err != nil {
		return nil, err
	}
	size, _ := space.Size()
	return grid{order: random.NewShuffle(size, seed).At}, nil
}

func checkGrid(space *Space) error {
	if err := space.check(); err != nil {
		return err
	}
	for i := range space.axes {
		if a := &space.axes[i]; a.count == 0 {
			return fmt.Errorf("parameter %q has no step: the grid needs one for each double", a.Name)
		}
	}
	if _, finite := space.Size(); !finite {
		return fmt.Errorf("grid has more points than the limit of 2^63, or 2^20 with constraints: want larger steps or fewer parameters")
	}
	return nil
}

// grid visits rank order(i) at index i, unless that was suggested already.
type grid struct {
	order func(uint64) uint64
}

func (g grid) Sample(ctx context.Context, h *History) (Point, error) {
	size, _ := h.space.Size()
	if exhausted(h) {
		return Point{}, ErrExhausted
	}
	for n := uint64(h.Len()); ; n++ {
		if p := h.space.At(g.order(n % size)); !h.Contains(p) {
			return p, ctx.Err()
		}
	}
}

func gridAlgorithm() maker {
	return maker{
		settings: []string{randomState},
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			if s.Has(randomState) {
				return NewShuffledGrid(p.Space, p.Seed)
			}
			return NewGrid(p.Space)
		},
		check: func(p Problem) error {
			if size, _ := p.Space.Size(); p.Budget.MaxTrials > 0 && uint64(p.Budget.MaxTrials) > size {
				return fmt.Errorf("space has %d points, but the search has %d trials: want at most as many trials as points", size, p.Budget.MaxTrials)
			}
			return nil
		},
	}
}
