// SPDX-License-Identifier: Apache-2.0

package quasirandom

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/optimize/internal/random"
)

func mustSobol(t *testing.T, dimensions int, scramble func() uint64) Sobol {
	t.Helper()
	s, err := NewSobol(dimensions, scramble)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSobolPublished compares with the ten points in three dimensions that Joe
// and Kuo publish with their program.
func TestSobolPublished(t *testing.T) {
	t.Parallel()
	s := mustSobol(t, 3, nil)
	var got [][]float64
	for n := range uint32(10) {
		got = append(got, s.Point(n))
	}
	want := [][]float64{
		{0, 0, 0},
		{0.5, 0.5, 0.5},
		{0.75, 0.25, 0.25},
		{0.25, 0.75, 0.75},
		{0.375, 0.375, 0.625},
		{0.875, 0.875, 0.125},
		{0.625, 0.125, 0.875},
		{0.125, 0.625, 0.375},
		{0.1875, 0.3125, 0.9375},
		{0.6875, 0.8125, 0.4375},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points: -published, +got:\n%s", diff)
	}
}

// TestSobolStrata checks, in every dimension, that each of the first 2^k
// intervals holds one of the first 2^k points, scrambled or not.
func TestSobolStrata(t *testing.T) {
	t.Parallel()
	for name, scramble := range map[string]func() uint64{"Plain": nil, "Scrambled": random.New(7, 0).Uint64} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const points = 256
			s := mustSobol(t, MaxSobol, scramble)
			hits := make([][points]int, MaxSobol)
			for n := range uint32(points) {
				for i, u := range s.Point(n) {
					hits[i][int(u*points)]++
				}
			}
			for i := range hits {
				for stratum, n := range hits[i] {
					if n != 1 {
						t.Fatalf("dimension %d: interval %d of %d holds %d points", i+1, stratum, points, n)
					}
				}
			}
		})
	}
}

// TestSobolPropertyA checks Sobol's property A, which Joe and Kuo's numbers
// have: of the first 2^d points in d dimensions, one lies in each of the 2^d
// parts that come of halving each dimension. It holds when the first bits of
// the direction numbers are a matrix of full rank modulo 2.
func TestSobolPropertyA(t *testing.T) {
	t.Parallel()
	directions, err := sobolDirections(sobolBits)
	if err != nil {
		t.Fatal(err)
	}
	for d := 1; d <= sobolBits; d++ {
		rows := make([]uint32, d)
		for i := range rows {
			for bit := range d {
				rows[i] |= directions[i][bit] >> (sobolBits - 1) << bit
			}
		}
		if r := rank(rows); r != d {
			t.Errorf("in %d dimensions the rank is %d", d, r)
		}
	}
}

// rank returns the rank of a matrix over the field of two elements.
func rank(rows []uint32) int {
	r := 0
	for bit := range sobolBits {
		for i := r; i < len(rows); i++ {
			if rows[i]>>bit&1 == 0 {
				continue
			}
			rows[r], rows[i] = rows[i], rows[r]
			for j := range rows {
				if j != r && rows[j]>>bit&1 == 1 {
					rows[j] ^= rows[r]
				}
			}
			r++
			break
		}
	}
	return r
}

// discrepancy returns the L2 star discrepancy of some points by Warnock's
// formula.
func discrepancy(points [][]float64) float64 {
	n, d := float64(len(points)), float64(len(points[0]))
	sum := math.Pow(3, -d)
	for _, x := range points {
		product := math.Pow(2, 1-d) / n
		for _, u := range x {
			product *= 1 - u*u
		}
		sum -= product
		for _, y := range points {
			product := 1 / (n * n)
			for i := range x {
				product *= 1 - math.Max(x[i], y[i])
			}
			sum += product
		}
	}
	return math.Sqrt(sum)
}

// TestSobolDiscrepancy compares with random points, whose mean squared
// discrepancy is known. In many more dimensions it takes many more points to
// tell the two apart by this measure.
func TestSobolDiscrepancy(t *testing.T) {
	t.Parallel()
	for _, dimensions := range []int{2, 3, 5} {
		for name, scramble := range map[string]func() uint64{"plain": nil, "scrambled": random.New(2, 0).Uint64} {
			s := mustSobol(t, dimensions, scramble)
			points := make([][]float64, 256)
			for i := range points {
				points[i] = s.Point(uint32(i))
			}
			d := float64(dimensions)
			random := math.Sqrt((math.Pow(2, -d) - math.Pow(3, -d)) / float64(len(points)))
			if got := discrepancy(points); got > random/2 {
				t.Errorf("%d dimensions, %s: discrepancy %v, want at most half of random points' %v", dimensions, name, got, random)
			}
		}
	}
}

// TestOwen checks what makes the scrambling Owen's: numbers that share their
// first k bits share them after it, and differ in the next bit as before.
func TestOwen(t *testing.T) {
	t.Parallel()
	numbers := random.New(3, 0)
	for range 1000 {
		x, key := uint32(numbers.Uint64()), numbers.Uint64()
		for bit := range sobolBits {
			y := x ^ 1<<(sobolBits-1-bit) // differs first in this bit
			same := owen(x, key) ^ owen(y, key)
			if same>>(sobolBits-1-bit) != 1 {
				t.Fatalf("scrambled %032b and %032b: first differ in %032b", x, y, same)
			}
		}
	}
}

func TestSobolTooMany(t *testing.T) {
	t.Parallel()
	if _, err := NewSobol(MaxSobol+1, nil); err == nil {
		t.Error("no error for more dimensions than it covers")
	}
}
