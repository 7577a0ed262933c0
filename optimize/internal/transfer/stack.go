// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"math"

	"diwan.dev/diwan/optimize/internal/gp"
)

// Stack is what predicts the losses of a search, in normal scores: a straight line
// through what the earlier ones say, and a process for the rest.
type Stack struct {
	*Target
	weights   []float64
	base      float64
	slope     float64
	rest      *gp.Model
	deviation float64 // of the rest
	best      float64 // mean at the best result
}

// Stack returns the stack of the search.
func (g *Target) Stack() *Stack {
	s := &Stack{Target: g, weights: g.Weights(), slope: 1, deviation: 1}
	if len(g.losses) >= 3 {
		s.learn()
	}
	return s
}

// learn fits line and process to the results.
func (s *Stack) learn() {
	scores := normalScores(s.losses)
	said := make([]float64, len(scores))
	var meanSaid, mean float64
	for i := range said {
		for m, w := range s.weights {
			said[i] += w * s.predictions[i][m]
		}
		meanSaid += said[i] / float64(len(said))
		mean += scores[i] / float64(len(said))
	}
	product, square := 0.0, 1.0 // a result's worth of none keeps the slope small
	for i := range said {
		product += (said[i] - meanSaid) * (scores[i] - mean)
		square += (said[i] - meanSaid) * (said[i] - meanSaid)
	}
	s.slope = math.Max(product/square, 0)
	s.base = mean - s.slope*meanSaid
	rest, squares := make([]float64, len(scores)), 0.0
	for i := range rest {
		rest[i] = scores[i] - s.base - s.slope*said[i]
		squares += rest[i] * rest[i]
	}
	s.deviation = math.Max(math.Sqrt(squares/float64(len(rest))), 1e-3)
	for i := range rest {
		rest[i] /= s.deviation
	}
	s.rest = s.models.features.Fit(s.rows, rest)
	s.best = math.Inf(1)
	for _, row := range s.rows {
		mean, _ := s.at(row)
		s.best = math.Min(s.best, mean)
	}
	for _, p := range s.pending {
		s.rest = s.rest.Given(p.row, s.rest.Mean(p.row))
	}
}

// at returns mean and deviation at a row of features.
func (s *Stack) at(row []float64) (mean, deviation float64) {
	square := 0.0
	for m, w := range s.weights {
		if w < 1e-3 {
			continue
		}
		a, variance := s.models.models[m].predict(row)
		mean += w * a
		square += w * (a*a + variance)
	}
	variance := math.Max(square-mean*mean, 0) * s.slope * s.slope
	mean = s.base + s.slope*mean
	if s.rest != nil {
		a, v := s.rest.Predict(row)
		mean += s.deviation * a
		variance += s.deviation * s.deviation * v
	}
	return mean, math.Sqrt(variance)
}

// Rate returns how little a point promises: minus the expected improvement on the
// best result, or where there are hardly any the lower confidence bound.
func (s *Stack) Rate(point []float64) float64 {
	mean, deviation := s.at(s.models.features.Row(point))
	switch {
	case s.rest == nil:
		return mean - deviation
	case deviation == 0:
		return math.Min(mean-s.best, 0)
	}
	z := (s.best - mean) / deviation
	return -deviation * (z*below(z) + math.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
}
