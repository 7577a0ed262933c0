// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"math"

	"diwan.dev/diwan/optimize/internal/random"
)

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
	h, err := newHalton(space.Len())
	if err != nil {
		return nil, err
	}
	h.keys = make([]uint64, space.Len())
	numbers := random.New(seed, 0)
	for i := range h.keys {
		h.keys[i] = numbers.Uint64()
	}
	return h, nil
}

// NewPlainHalton returns the sampler whose points are the Halton sequence as
// published (J. H. Halton, 1960), from its point 1 on: point 0 is the corner
// where each parameter has its least value. See [NewHalton], which is better
// for more than a few parameters.
func NewPlainHalton(space *Space) (Sampler, error) {
	h, err := newHalton(space.Len())
	if err != nil {
		return nil, err
	}
	return h, nil
}

type halton struct {
	bases []uint64
	keys  []uint64 // nil for the sequence as published
}

func newHalton(dimensions int) (halton, error) {
	if dimensions > MaxHalton {
		return halton{}, fmt.Errorf("space has %d parameters: a Halton sequence covers at most %d", dimensions, MaxHalton)
	}
	return halton{bases: primes(dimensions)}, nil
}

func (s halton) Sample(ctx context.Context, h *History) (Point, error) {
	n := uint64(h.Len())
	if s.keys == nil {
		n++
	}
	p, err := novel(h, draws, func() Point {
		p := h.space.Quantile(s.point(n))
		n += 1 << 20 // another stretch of the sequence, spread as evenly
		return p
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// point returns the point of the sequence with index n, in the unit cube.
func (s halton) point(n uint64) []float64 {
	u := make([]float64, len(s.bases))
	for i, base := range s.bases {
		if s.keys == nil {
			u[i] = radicalInverse(n, base)
		} else {
			u[i] = scrambledInverse(n, base, s.keys[i])
		}
	}
	return u
}

// radicalInverse returns the digits of n, read backwards as a fraction.
func radicalInverse(n, base uint64) float64 {
	inverse, weight := 0.0, 1.0
	for ; n > 0; n /= base {
		weight /= float64(base)
		inverse += weight * float64(n%base)
	}
	return inverse
}

// scrambledInverse is radicalInverse with each digit permuted by a random
// permutation that belongs to the digits before it. The zeros after the digits
// of the largest index come out as one random number.
func scrambledInverse(n, base, key uint64) float64 {
	inverse, weight := 0.0, 1.0
	for width := 1.0; width < 1<<32; width *= float64(base) {
		digit := n % base
		n /= base
		weight /= float64(base)
		inverse += weight * float64(permuted(digit, base, key))
		key = random.Mix(key ^ random.Mix(digit+1)) // of the digits so far
	}
	inverse += weight * random.New(key, 0).Float()
	return math.Min(inverse, math.Nextafter(1, 0))
}

// permuted returns what a random permutation makes of a digit. That of a small
// base ranks a random number for each digit; a Feistel network is faster for a
// large one, where its slight preferences no longer matter.
func permuted(digit, base, key uint64) uint64 {
	if base > 64 {
		return newPermutation(base, key).at(digit)
	}
	own, rank := random.Mix(key+(digit+1)*random.Golden), uint64(0)
	for other := range base {
		if random.Mix(key+(other+1)*random.Golden) < own {
			rank++
		}
	}
	return rank
}

// primes returns the first n prime numbers.
func primes(n int) []uint64 {
	found := make([]uint64, 0, n)
	for candidate := uint64(2); len(found) < n; candidate++ {
		if isPrime(candidate, found) {
			found = append(found, candidate)
		}
	}
	return found
}

// isPrime reports whether no smaller prime divides a number.
func isPrime(n uint64, smaller []uint64) bool {
	for _, p := range smaller {
		if p*p > n {
			break
		}
		if n%p == 0 {
			return false
		}
	}
	return true
}

func haltonAlgorithm() maker {
	const scramble = "scramble"
	return maker{settings: []string{randomState, scramble}, build: func(s *settings, p Problem) (Sampler, error) {
		if s.bool(scramble, true) {
			return NewHalton(p.Space, p.Seed)
		}
		return NewPlainHalton(p.Space)
	}}
}
