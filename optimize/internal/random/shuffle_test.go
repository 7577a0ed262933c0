// SPDX-License-Identifier: Apache-2.0

package random

import (
	"testing"

	"pgregory.net/rapid"
)

func TestShuffle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.Uint64Range(1, 3000).Draw(rt, "size")
		p := NewShuffle(size, rapid.Uint64().Draw(rt, "seed"))
		seen := make([]bool, size)
		for n := range size {
			m := p.At(n)
			if m >= size || seen[m] {
				rt.Fatalf("At(%d) = %d of %d, seen before", n, m, size)
			}
			seen[m] = true
		}
	})
	huge := NewShuffle(1<<63, 1)
	if m := huge.At(1<<63 - 1); m >= 1<<63 {
		t.Errorf("At(2^63-1) = %d of 2^63", m)
	}
}
