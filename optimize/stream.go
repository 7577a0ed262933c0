// SPDX-License-Identifier: Apache-2.0

package optimize

import "math"

// stream is a sequence of random numbers that its seed and number determine,
// for ever: neither a Go release nor a platform changes it, so that searches
// can be repeated. It is SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014).
type stream struct{ state uint64 }

func newStream(seed, number uint64) *stream {
	return &stream{mix(mix(seed) + number*golden)}
}

// golden is 2⁶⁴ divided by the golden ratio, made odd.
const golden = 0x9e3779b97f4a7c15

func (s *stream) next() uint64 {
	s.state += golden
	return mix(s.state)
}

// float returns a number that is greater than 0 and less than 1.
func (s *stream) float() float64 {
	return (float64(s.next()>>12) + 0.5) / (1 << 52)
}

// normal returns a standard normal number.
func (s *stream) normal() float64 { return -math.Sqrt2 * math.Erfcinv(2*s.float()) }

// mix spreads each bit of x over all bits of the result, one to one.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
