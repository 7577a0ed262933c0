// SPDX-License-Identifier: Apache-2.0

package random

// Shuffle is a permutation of the numbers below a size that needs no memory: a
// Feistel network over the next power of four, walked until it is back below
// the size.
type Shuffle struct {
	size uint64
	half uint // bits of one half
	keys [4]uint64
}

// NewShuffle returns the shuffle that a seed determines.
func NewShuffle(size, seed uint64) *Shuffle {
	p := &Shuffle{size: size, half: 1}
	for p.half < 32 && size > 1<<(2*p.half) {
		p.half++
	}
	numbers := New(seed, 0)
	for i := range p.keys {
		p.keys[i] = numbers.Uint64()
	}
	return p
}

// At returns the place of n, for n below size.
func (p *Shuffle) At(n uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	for {
		left, right := n>>p.half, n&mask
		for _, key := range p.keys {
			left, right = right, left^Mix(right+key)&mask
		}
		if n = left<<p.half | right; n < p.size {
			return n
		}
	}
}
