// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"math"

	"diwan.dev/diwan/optimize/internal/quasirandom"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// MaxSobol is the greatest number of parameters that a Sobol sequence covers.
const MaxSobol = 1024

// NewSobol returns the sampler whose points are a Sobol sequence with the
// direction numbers of Joe and Kuo, scrambled by the seed as Owen does: any
// 2^k points in a row from a multiple of 2^k are spread as evenly as in the
// sequence itself, but points of different seeds are independent, none lies on
// the border of the space, and an average over the points errs less. It fails
// for a space of more than [MaxSobol] parameters.
func NewSobol(space *Space, seed uint64) (Sampler, error) {
	return newSobol(space, random.New(seed, 0).Uint64)
}

// NewPlainSobol returns the sampler whose points are the Sobol sequence as
// published, which begins in the corner where each parameter has its least
// value. Katib's sobol does this.
func NewPlainSobol(space *Space) (Sampler, error) {
	return newSobol(space, nil)
}

// newSobol makes the sampler; scramble gives a key for each parameter.
func newSobol(space *Space, scramble func() uint64) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	sequence, err := quasirandom.NewSobol(space.Len(), scramble)
	if err != nil {
		return nil, err
	}
	return sobol{sequence}, nil
}

type sobol struct{ sequence quasirandom.Sobol }

func (s sobol) Sample(ctx context.Context, h *History) (Point, error) {
	if exhausted(h) {
		return Point{}, ErrExhausted
	}
	if uint64(h.Len()) > math.MaxUint32 {
		return Point{}, fmt.Errorf("cannot sample point %d: a Sobol sequence has 2^32 points", h.Len())
	}
	n := uint32(h.Len())
	p, err := novel(h, draws, func() Point {
		p := h.space.Quantile(s.sequence.Point(n))
		n += 1 << 16 // another stretch of the sequence, spread as evenly
		return p
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// initialDesign returns the sampler of the points that come before a model.
func initialDesign(space *Space, seed uint64) Sampler {
	if start, err := NewSobol(space, seed); err == nil {
		return start
	}
	return NewRandom(seed) // more parameters than a Sobol sequence covers
}

func sobolAlgorithm() maker {
	const scramble = "scramble"
	return maker{
		settings: []string{randomState, scramble},
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			if s.Bool(scramble, true) {
				return NewSobol(p.Space, p.Seed)
			}
			return NewPlainSobol(p.Space)
		},
	}
}

// MaxHalton is the greatest number of parameters that a Halton sequence
// covers.
const MaxHalton = 1024

// NewHalton returns the sampler whose points are a Halton sequence: parameter
// i counts in the i-th prime, its digits read backwards as a fraction. The seed
// scrambles the digits as Owen does (A. B. Owen, "Randomly permuted (t,m,s)-nets
// and (t,s)-sequences", 1995): each is permuted at random for each combination
// of the digits before it, which keeps points as evenly spread and breaks the
// stripes that large primes make. It fails for a space of more than
// [MaxHalton] parameters.
func NewHalton(space *Space, seed uint64) (Sampler, error) {
	return newHalton(space, random.New(seed, 0).Uint64)
}

// NewPlainHalton returns the sampler whose points are the Halton sequence as
// published (J. H. Halton, 1960), from its point 1 on: point 0 is the corner
// where each parameter has its least value. See [NewHalton], which is better
// for more than a few parameters.
func NewPlainHalton(space *Space) (Sampler, error) {
	return newHalton(space, nil)
}

// newHalton makes the sampler; scramble gives a key for each parameter.
func newHalton(space *Space, scramble func() uint64) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	sequence, err := quasirandom.NewHalton(space.Len(), scramble)
	if err != nil {
		return nil, err
	}
	first := uint64(0)
	if scramble == nil {
		first = 1
	}
	return halton{sequence, first}, nil
}

type halton struct {
	sequence quasirandom.Halton
	first    uint64 // the index of its first point
}

func (s halton) Sample(ctx context.Context, h *History) (Point, error) {
	n := s.first + uint64(h.Len())
	p, err := novel(h, draws, func() Point {
		p := h.space.Quantile(s.sequence.Point(n))
		n += 1 << 20 // another stretch of the sequence, spread as evenly
		return p
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

func haltonAlgorithm() maker {
	const scramble = "scramble"
	return maker{settings: []string{randomState, scramble}, build: func(s *settings.Reader, p Problem) (Sampler, error) {
		if s.Bool(scramble, true) {
			return NewHalton(p.Space, p.Seed)
		}
		return NewPlainHalton(p.Space)
	}}
}
