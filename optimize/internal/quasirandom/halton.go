// SPDX-License-Identifier: Apache-2.0

package quasirandom

import (
	"fmt"
	"math"

	"diwan.dev/diwan/optimize/internal/random"
)

// MaxHalton is the greatest number of dimensions of a Halton sequence.
const MaxHalton = 1024

// Halton is a Halton sequence: dimension i counts in the i-th prime, its digits
// read backwards as a fraction. It may be scrambled as Owen does (A. B. Owen,
// "Randomly permuted (t,m,s)-nets and (t,s)-sequences", 1995): each digit is
// permuted at random for each combination of the digits before it.
type Halton struct {
	bases []uint64
	keys  []uint64 // nil for the sequence as published
}

// NewHalton returns a sequence of at most [MaxHalton] dimensions. It is
// scrambled by a key for each, which scramble gives; nil does not scramble.
func NewHalton(dimensions int, scramble func() uint64) (Halton, error) {
	if dimensions > MaxHalton {
		return Halton{}, fmt.Errorf("space has %d parameters: a Halton sequence covers at most %d", dimensions, MaxHalton)
	}
	return Halton{primes(dimensions), keys(dimensions, scramble)}, nil
}

// Point returns the point of the sequence with index n, in the unit cube.
func (s Halton) Point(n uint64) []float64 {
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
		return random.NewShuffle(base, key).At(digit)
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
