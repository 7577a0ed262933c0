// SPDX-License-Identifier: Apache-2.0

// Package random is sequences of random numbers that a seed and a number
// determine forever: neither a Go release nor a platform changes them, so that
// what is made of them can be repeated. They are those of SplitMix64 (Steele,
// Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
package random

import "math"

// Stream is a sequence. It is not safe for several goroutines at once.
type Stream struct{ state uint64 }

// Golden is 2⁶⁴ divided by the golden ratio, made odd: multiples of it are keys
// that lie far apart.
const Golden = 0x9e3779b97f4a7c15

// New returns the sequence with a number of those of a seed.
func New(seed, number uint64) *Stream {
	return &Stream{Mix(Mix(seed) + number*Golden)}
}

// Mix spreads each bit of x over all bits of the result, one to one.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Uint64 returns the next number of 64 random bits.
func (s *Stream) Uint64() uint64 {
	s.state += Golden
	return Mix(s.state)
}

// Float returns a number that is greater than 0 and less than 1.
func (s *Stream) Float() float64 {
	return (float64(s.Uint64()>>12) + 0.5) / (1 << 52)
}

// Below returns an integer from 0 to n-1, for n up to 2⁵⁰.
func (s *Stream) Below(n int) int { return int(s.Float() * float64(n)) }

// Normal returns a number with mean 0 and deviation 1.
func (s *Stream) Normal() float64 { return -math.Sqrt2 * math.Erfcinv(2*s.Float()) }

// Permutation returns the integers from 0 to n-1 in random order.
func (s *Stream) Permutation(n int) []int {
	order := make([]int, n)
	for i := range order {
		k := s.Below(i + 1)
		order[i], order[k] = order[k], i
	}
	return order
}
