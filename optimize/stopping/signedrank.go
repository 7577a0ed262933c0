// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"math"
	"slices"
)

// exactRanks is the number of differences up to which the signed-rank test
// counts all cases. Beyond, the normal distribution is as good.
const exactRanks = 100

// signedRank returns the one-sided p-value of Wilcoxon's signed-rank test
// ("Individual comparisons by ranking methods", 1945): the probability, where
// each difference is as likely to be positive as negative, that the positive
// ones have a rank sum as large as here. Equal differences share their average
// rank, and half of the rank of a difference of 0 counts as positive (Pratt's
// ranks, split).
func signedRank(differences []float64) float64 {
	n := len(differences)
	sorted := slices.Clone(differences)
	slices.SortFunc(sorted, func(a, b float64) int {
		switch {
		case math.Abs(a) < math.Abs(b):
			return -1
		case math.Abs(a) > math.Abs(b):
			return 1
		}
		return 0
	})
	// Doubled ranks are whole.
	doubled, positive := make([]int, 0, n), 0
	for i := 0; i < n; {
		j := i + 1
		for j < n && math.Abs(sorted[j]) == math.Abs(sorted[i]) {
			j++
		}
		shared := i + 1 + j
		for ; i < j; i++ {
			switch {
			case sorted[i] > 0:
				positive += shared
			case sorted[i] == 0:
				continue // as likely either way: half of it in the statistic and in its expectation
			}
			doubled = append(doubled, shared)
		}
	}
	if len(doubled) <= exactRanks {
		return exactTail(doubled, positive)
	}
	return normalTail(doubled, positive)
}

// exactTail returns the part of all choices of signs that give some ranks
// a positive sum of at least so much.
func exactTail(ranks []int, positive int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	probability := make([]float64, total+1) // of each positive sum
	probability[0] = 1
	reach := 0
	for _, r := range ranks {
		reach += r
		for sum := reach; sum >= 0; sum-- {
			p := probability[sum]
			if sum >= r {
				p += probability[sum-r]
			}
			probability[sum] = p / 2
		}
	}
	tail := 0.0
	for sum := total; sum >= positive; sum-- { // small ones first
		tail += probability[sum]
	}
	return math.Min(tail, 1)
}

// normalTail approximates exactTail.
func normalTail(ranks []int, positive int) float64 {
	mean, variance := 0.0, 0.0
	for _, r := range ranks {
		mean += float64(r) / 2
		variance += float64(r) * float64(r) / 4
	}
	z := (float64(positive) - mean) / math.Sqrt(variance)
	return math.Erfc(z/math.Sqrt2) / 2
}
