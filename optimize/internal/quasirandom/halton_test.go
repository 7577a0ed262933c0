// SPDX-License-Identifier: Apache-2.0

package quasirandom

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"diwan.dev/diwan/optimize/internal/random"
)

// TestHaltonPublished compares with the points in the bases 2, 3 and 5 that
// follow from Halton's definition: the digits of n, reversed.
func TestHaltonPublished(t *testing.T) {
	t.Parallel()
	s, err := NewHalton(3, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]float64
	for n := range uint64(9) {
		got = append(got, s.Point(n))
	}
	want := [][]float64{
		{0, 0, 0},
		{1. / 2, 1. / 3, 1. / 5},
		{1. / 4, 2. / 3, 2. / 5},
		{3. / 4, 1. / 9, 3. / 5},
		{1. / 8, 4. / 9, 4. / 5},
		{5. / 8, 7. / 9, 1. / 25},
		{3. / 8, 2. / 9, 6. / 25},
		{7. / 8, 5. / 9, 11. / 25},
		{1. / 16, 8. / 9, 16. / 25},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-15)); diff != "" {
		t.Errorf("points: -published, +got:\n%s", diff)
	}
}

func TestPrimes(t *testing.T) {
	t.Parallel()
	found := primes(MaxHalton)
	if diff := cmp.Diff([]uint64{2, 3, 5, 7, 11, 13, 17, 19, 23, 29}, found[:10]); diff != "" {
		t.Errorf("first primes: -want, +got:\n%s", diff)
	}
	if got := found[999]; got != 7919 {
		t.Errorf("prime number 1000 is %d: want 7919", got)
	}
}

// TestHaltonStrata checks that scrambling keeps what makes the sequence even:
// of any b^k points in a row, one lies in each of the b^k intervals of base b.
func TestHaltonStrata(t *testing.T) {
	t.Parallel()
	for i, base := range primes(20) {
		strata := base
		for strata*base < 1000 {
			strata *= base
		}
		for _, start := range []uint64{0, 1, 12345, 1 << 30} {
			hits := make([]int, strata)
			for n := range strata {
				hits[int(scrambledInverse(start+n, base, uint64(i)*random.Golden)*float64(strata))]++
			}
			for stratum, n := range hits {
				if n != 1 {
					t.Fatalf("base %d from point %d: interval %d of %d holds %d points", base, start, stratum, strata, n)
				}
			}
		}
	}
}

// TestHaltonUniform checks that over many seeds each point is anywhere with
// the same probability, by the chi-squared test at three deviations.
func TestHaltonUniform(t *testing.T) {
	t.Parallel()
	const cells, seeds = 10, 5000
	for _, base := range []uint64{2, 3, 5, 97} {
		for _, n := range []uint64{0, 1, 7} {
			var hits [cells]float64
			keys := random.New(base, n)
			for range seeds {
				hits[int(scrambledInverse(n, base, keys.Uint64())*cells)]++
			}
			var chi float64
			for _, h := range hits {
				chi += (h - seeds/cells) * (h - seeds/cells) / (seeds / cells)
			}
			if limit := (cells - 1) + 4*math.Sqrt(2*(cells-1)); chi > limit {
				t.Errorf("base %d, point %d: chi squared is %.1f: want at most %.1f", base, n, chi, limit)
			}
		}
	}
}

// TestHaltonDiscrepancy checks that points are spread more evenly than random
// ones, and that scrambling helps where bases are large.
func TestHaltonDiscrepancy(t *testing.T) {
	t.Parallel()
	const points, runs = 128, 5
	mean := func(point func(run int, n uint64) []float64) (sum float64) {
		for run := range runs {
			var set [][]float64
			for n := range uint64(points) {
				set = append(set, point(run, n))
			}
			sum += centredDiscrepancy(set) / runs
		}
		return sum
	}
	for _, dimensions := range []int{2, 10, 30} {
		t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
			t.Parallel()
			plain, err := NewHalton(dimensions, nil)
			if err != nil {
				t.Fatal(err)
			}
			published := mean(func(_ int, n uint64) []float64 { return plain.Point(n + 1) })
			scrambled := mean(func(run int, n uint64) []float64 {
				s := Halton{plain.bases, keys(dimensions, random.New(uint64(run), 0).Uint64)}
				return s.Point(n)
			})
			random := mean(func(run int, n uint64) []float64 {
				u, numbers := make([]float64, dimensions), random.New(uint64(run), n)
				for i := range u {
					u[i] = numbers.Float()
				}
				return u
			})
			if scrambled >= random {
				t.Errorf("discrepancy is %.3g scrambled: want less than %.3g, random", scrambled, random)
			}
			if dimensions > 5 && scrambled >= published {
				t.Errorf("discrepancy is %.3g scrambled: want less than %.3g, as published", scrambled, published)
			}
		})
	}
}

// centredDiscrepancy is the centred L2 discrepancy of F. J. Hickernell, "A
// generalized discrepancy and quadrature error bound", 1998, equation 5.2.
func centredDiscrepancy(points [][]float64) float64 {
	n := float64(len(points))
	total := math.Pow(13./12, float64(len(points[0])))
	for _, x := range points {
		product := 1.0
		for _, v := range x {
			d := math.Abs(v - .5)
			product *= 1 + d/2 - d*d/2
		}
		total -= 2 / n * product
	}
	for _, x := range points {
		for _, y := range points {
			product := 1.0
			for i := range x {
				product *= 1 + math.Abs(x[i]-.5)/2 + math.Abs(y[i]-.5)/2 - math.Abs(x[i]-y[i])/2
			}
			total += product / (n * n)
		}
	}
	return math.Sqrt(total)
}

func TestHaltonTooMany(t *testing.T) {
	t.Parallel()
	if _, err := NewHalton(MaxHalton+1, nil); err == nil {
		t.Error("no error for more dimensions than it covers")
	}
}
