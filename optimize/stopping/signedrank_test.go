// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestSignedRank compares with recorded values: those of SciPy 1.16's
// wilcoxon(zero_method="zsplit", method="exact").
func TestSignedRank(t *testing.T) {
	t.Parallel()
	hollander := []float64{0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01} // Hollander and Wolfe's depression scores
	tests := map[string]struct {
		differences []float64
		want        float64
	}{
		"Hollander": {hollander, 0.01953125},
		"Mirrored":  {negated(hollander), 0.986328125},
		"Three":     {[]float64{1, 2, 3}, 0.125},
		"Five":      {[]float64{1, -2, 3, 4, 5}, 0.09375},
		"Eight":     {[]float64{-1, 2, -3, 4, 5, 6, -7, 8}, 0.19140625},
	}
	for name, tc := range tests {
		if got := signedRank(tc.differences); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: p = %v, want %v", name, got, tc.want)
		}
	}
}

func negated(list []float64) []float64 {
	var other []float64
	for _, x := range list {
		other = append(other, -x)
	}
	return other
}

// TestSignedRankCounts compares with counting all signs one by one, with ties
// and zeros.
func TestSignedRankCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		differences := rapid.SliceOfN(rapid.Map(rapid.IntRange(-4, 4), func(x int) float64 { return float64(x) }), 1, 9).Draw(rt, "differences")
		statistic := func(d []float64) float64 {
			sum := 0.0
			for _, x := range d {
				if x <= 0 {
					continue
				}
				for _, y := range d { // its rank, the average of equals
					switch {
					case math.Abs(y) < math.Abs(x):
						sum++
					case math.Abs(y) == math.Abs(x):
						sum += 0.5
					}
				}
				sum += 0.5
			}
			return sum
		}
		have, reached, cases := statistic(differences), 0, 1<<len(differences)
		for signs := range cases {
			flipped := make([]float64, len(differences))
			for i, d := range differences {
				if flipped[i] = d; signs>>i&1 == 1 {
					flipped[i] = -d
				}
			}
			if statistic(flipped) >= have-1e-9 {
				reached++
			}
		}
		if got, want := signedRank(differences), float64(reached)/float64(cases); math.Abs(got-want) > 1e-12 {
			rt.Fatalf("p of %v is %v: want %v", differences, got, want)
		}
	})
}

// TestNormalTail checks that the approximation joins the exact test.
func TestNormalTail(t *testing.T) {
	t.Parallel()
	ranks := make([]int, exactRanks)
	for i := range ranks {
		ranks[i] = 2 * (i + 1)
	}
	for _, positive := range []int{4000, 5050, 5600, 6000, 6400} {
		exact, normal := exactTail(ranks, positive), normalTail(ranks, positive)
		if math.Abs(exact-normal) > 0.002 {
			t.Errorf("rank sum %d: p = %v exactly, and approximated %v", positive, exact, normal)
		}
	}
}
