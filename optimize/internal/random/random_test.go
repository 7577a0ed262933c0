// SPDX-License-Identifier: Apache-2.0

package random

import (
	"math"
	"slices"
	"testing"
)

// TestPublished compares with the first numbers that SplitMix64 is known to
// give from the state 1234567.
func TestPublished(t *testing.T) {
	t.Parallel()
	s := &Stream{1234567}
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.Uint64(); got != want {
			t.Errorf("number %d is %d: want %d", i, got, want)
		}
	}
}

func TestNormal(t *testing.T) {
	t.Parallel()
	s, n := New(1, 2), 20000.0
	mean, square := 0.0, 0.0
	for range int(n) {
		v := s.Normal()
		mean += v / n
		square += v * v / n
	}
	if math.Abs(mean) > 5/math.Sqrt(n) || math.Abs(square-1) > 5*math.Sqrt(2/n) {
		t.Errorf("mean %v, mean square %v: want 0 and 1", mean, square)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	s, counts := New(3, 4), make([]int, 7)
	for range 7000 {
		counts[s.Below(7)]++
	}
	for i, n := range counts {
		if math.Abs(float64(n)-1000) > 150 {
			t.Errorf("%d comes %d times of 7000", i, n)
		}
	}
}

func TestPermutation(t *testing.T) {
	t.Parallel()
	s, first := New(5, 6), make([]int, 4)
	for range 4000 {
		order := s.Permutation(4)
		first[order[0]]++
		if slices.Sort(order); !slices.Equal(order, []int{0, 1, 2, 3}) {
			t.Fatalf("sorted permutation is %v", order)
		}
	}
	for i, n := range first {
		if math.Abs(float64(n)-1000) > 150 {
			t.Errorf("%d comes first %d times of 4000", i, n)
		}
	}
}
