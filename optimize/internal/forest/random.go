// SPDX-License-Identifier: Apache-2.0

package forest

// random is a sequence of random numbers that its seed and number determine
// for ever, on each platform: SplitMix64 (Steele, Lea and Flood 2014).
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio, made odd

func newRandom(seed, number uint64) *random {
	return &random{mix(mix(seed) + number*golden)}
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// float returns a number that is greater than 0 and less than 1.
func (r *random) float() float64 {
	r.state += golden
	return (float64(mix(r.state)>>12) + 0.5) / (1 << 52)
}

// below returns a number from 0 to n-1.
func (r *random) below(n int) int { return int(r.float() * float64(n)) }
