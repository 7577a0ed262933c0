// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"diwan.dev/diwan/optimize/internal/random"
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

// newSobol makes the sampler; scramble gives a key for each dimension.
func newSobol(space *Space, scramble func() uint64) (Sampler, error) {
	directions, err := sobolDirections(space.Len())
	if err != nil {
		return nil, err
	}
	s := sobol{directions: directions}
	if scramble != nil {
		s.keys = make([]uint64, space.Len())
		for i := range s.keys {
			s.keys[i] = scramble()
		}
	}
	return s, nil
}

type sobol struct {
	directions [][sobolBits]uint32
	keys       []uint64 // nil for the sequence as published
}

// sobolBits is the number of bits of a coordinate; the sequence has 2^sobolBits
// points.
const sobolBits = 32

func (s sobol) Sample(ctx context.Context, h *History) (Point, error) {
	if exhausted(h) {
		return Point{}, ErrExhausted
	}
	if uint64(h.Len()) > math.MaxUint32 {
		return Point{}, fmt.Errorf("cannot sample point %d: a Sobol sequence has 2^32 points", h.Len())
	}
	n := uint32(h.Len())
	p, err := novel(h, draws, func() Point {
		p := h.space.Quantile(s.point(n))
		n += 1 << 16 // another stretch of the sequence, spread as evenly
		return p
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// point returns the point of the sequence with index n, in the unit cube. The
// order is that of the Gray code of n, as is usual.
func (s sobol) point(n uint32) []float64 {
	u := make([]float64, len(s.directions))
	for i := range u {
		var x uint32
		for gray := n ^ n>>1; gray != 0; gray &= gray - 1 {
			x ^= s.directions[i][bits.TrailingZeros32(gray)]
		}
		if s.keys == nil {
			u[i] = float64(x) / (1 << sobolBits)
		} else {
			u[i] = (float64(owen(x, s.keys[i])) + 0.5) / (1 << sobolBits)
		}
	}
	return u
}

// owen is Owen's nested uniform scrambling in base 2: each bit is flipped or
// not by a random number of its own for each combination of the bits above it.
func owen(x uint32, key uint64) uint32 {
	scrambled := x
	for bit := range sobolBits {
		above := uint64(x) >> (sobolBits - bit)
		node := uint64(1)<<bit | above // numbers the nodes of the tree of prefixes
		flip := uint32(random.Mix(key+node*random.Golden) >> 63)
		scrambled ^= flip << (sobolBits - 1 - bit)
	}
	return scrambled
}

//go:embed sobol_joe_kuo.txt
var joeKuo string

// sobolDirections returns the direction numbers of the first dimensions. Bit
// sobolBits-1 of a number stands for one half.
func sobolDirections(dimensions int) ([][sobolBits]uint32, error) {
	if dimensions > MaxSobol {
		return nil, fmt.Errorf("space has %d parameters: a Sobol sequence covers at most %d", dimensions, MaxSobol)
	}
	directions := make([][sobolBits]uint32, 1, dimensions)
	for bit := range sobolBits { // the first dimension is van der Corput's sequence
		directions[0][bit] = 1 << (sobolBits - 1 - bit)
	}
	lines := bufio.NewScanner(strings.NewReader(joeKuo))
	for len(directions) < dimensions && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		numbers, err := parseDirections(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("cannot read direction numbers %q: %w", lines.Text(), err)
		}
		directions = append(directions, numbers)
	}
	return directions, lines.Err()
}

// parseDirections reads a line of Joe and Kuo's file, which holds the number
// of the dimension, the degree s of its primitive polynomial, the inner
// coefficients of that as bits of a, and the first s direction integers; and
// continues these by the recurrence of the polynomial.
func parseDirections(line string) (directions [sobolBits]uint32, err error) {
	var dimension, degree int
	var coefficients uint32
	fields := strings.NewReader(line)
	if _, err := fmt.Fscan(fields, &dimension, &degree, &coefficients); err != nil {
		return directions, err
	}
	for i := range sobolBits {
		if i < degree {
			if _, err := fmt.Fscan(fields, &directions[i]); err != nil {
				return directions, err
			}
			directions[i] <<= sobolBits - 1 - i
			continue
		}
		directions[i] = directions[i-degree] ^ directions[i-degree]>>degree
		for j := 1; j < degree; j++ {
			if coefficients>>(degree-1-j)&1 == 1 {
				directions[i] ^= directions[i-j]
			}
		}
	}
	return directions, nil
}

func sobolAlgorithm() maker {
	const scramble = "scramble"
	return maker{
		settings: []string{randomState, scramble},
		build: func(s *settings, p Problem) (Sampler, error) {
			if s.bool(scramble, true) {
				return NewSobol(p.Space, p.Seed)
			}
			return NewPlainSobol(p.Space)
		},
	}
}
