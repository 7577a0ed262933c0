// SPDX-License-Identifier: Apache-2.0

package quasirandom

import (
	"bufio"
	_ "embed"
	"fmt"
	"math/bits"
	"strings"

	"diwan.dev/diwan/optimize/internal/random"
)

// MaxSobol is the greatest number of dimensions of a Sobol sequence.
const MaxSobol = 1024

// Sobol is a Sobol sequence with the direction numbers of Joe and Kuo. It may be
// scrambled as Owen does: any 2^k points in a row from a multiple of 2^k are
// spread as evenly as in the sequence itself, but points of different keys are
// independent.
type Sobol struct {
	directions [][sobolBits]uint32
	keys       []uint64 // nil for the sequence as published
}

// sobolBits is the number of bits of a coordinate; the sequence has 2^sobolBits
// points.
const sobolBits = 32

// NewSobol returns a sequence of at most [MaxSobol] dimensions. It is scrambled
// by a key for each, which scramble gives; nil does not scramble.
func NewSobol(dimensions int, scramble func() uint64) (Sobol, error) {
	directions, err := sobolDirections(dimensions)
	if err != nil {
		return Sobol{}, err
	}
	return Sobol{directions, keys(dimensions, scramble)}, nil
}

// keys returns a scrambling key for each dimension, nil where there is no
// scramble.
func keys(dimensions int, scramble func() uint64) []uint64 {
	if scramble == nil {
		return nil
	}
	keys := make([]uint64, dimensions)
	for i := range keys {
		keys[i] = scramble()
	}
	return keys
}

// Point returns the point of the sequence with index n, in the unit cube, in
// the usual Gray code order.
func (s Sobol) Point(n uint32) []float64 {
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
// not by a separate random number for each combination of the bits above it.
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

//go:embed joe_kuo.txt
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
