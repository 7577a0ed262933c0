// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"math"

	"diwan.dev/diwan/optimize/internal/surrogate"
)

// Source is an earlier search as seen from another.
type Source struct {
	// Best are its best points, with all coordinates.
	Best [][]float64

	points [][]float64
	losses []float64
	scores []float64 // normal scores of the losses
	known  []bool    // by coordinate: whether the source has it
}

// bestOfSource is how many points of each source may be suggested.
const bestOfSource = 3

// NewSource returns an earlier search by at least two results, and which
// coordinates it has; others are not numbers.
func NewSource(points [][]float64, losses []float64, known []bool) *Source {
	s := &Source{points: points, losses: losses, scores: normalScores(losses), known: known}
	for _, i := range surrogate.Ascending(losses)[:min(bestOfSource, len(losses))] {
		s.Best = append(s.Best, surrogate.Whole(points[i]))
	}
	return s
}

// normalScores maps numbers to those that as many of a normal distribution are
// below, whatever their scale and outliers; equal ones share their mean place.
func normalScores(numbers []float64) []float64 {
	order, n := surrogate.Ascending(numbers), len(numbers)
	scores := make([]float64, n)
	for from := 0; from < n; {
		to := from + 1
		for to < n && numbers[order[to]] == numbers[order[from]] {
			to++
		}
		part := float64(from+to) / 2 / float64(n)
		for _, i := range order[from:to] {
			scores[i] = -math.Sqrt2 * math.Erfcinv(2*part)
		}
		from = to
	}
	return scores
}
