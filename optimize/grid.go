// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"

	"diwan.dev/diwan/optimize/internal/random"
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
	return grid{order: newPermutation(size, seed).at}, nil
}

func checkGrid(space *Space) error {
	for i := range space.axes {
		if a := &space.axes[i]; a.count == 0 {
			return fmt.Errorf("parameter %q has no step: the grid needs one for each double", a.Name)
		}
	}
	if _, finite := space.Size(); !finite {
		return fmt.Errorf("grid has more points than can be counted, which is 2^63, or 2^20 under constraints: want larger steps or fewer parameters")
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

// permutation is a shuffle of the numbers below size that needs no memory: a
// Feistel network over the next power of four, walked until it is back below
// size.
type permutation struct {
	size uint64
	half uint // bits of one half
	keys [4]uint64
}

func newPermutation(size, seed uint64) *permutation {
	p := &permutation{size: size, half: 1}
	for p.half < 32 && size > 1<<(2*p.half) {
		p.half++
	}
	numbers := random.New(seed, 0)
	for i := range p.keys {
		p.keys[i] = numbers.Uint64()
	}
	return p
}

// at returns the place of n, for n below size.
func (p *permutation) at(n uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	for {
		left, right := n>>p.half, n&mask
		for _, key := range p.keys {
			left, right = right, left^random.Mix(right+key)&mask
		}
		if n = left<<p.half | right; n < p.size {
			return n
		}
	}
}

func gridAlgorithm() maker {
	return maker{
		settings: []string{randomState},
		build: func(s *settings, p Problem) (Sampler, error) {
			if s.has(randomState) {
				return NewShuffledGrid(p.Space, p.Seed)
			}
			return NewGrid(p.Space)
		},
		check: func(_ *settings, p Problem) error {
			if size, _ := p.Space.Size(); p.Budget.MaxTrials > 0 && uint64(p.Budget.MaxTrials) > size {
				return fmt.Errorf("space has %d points, but the search is to have %d trials: want at most as many trials as points", size, p.Budget.MaxTrials)
			}
			return nil
		},
	}
}
