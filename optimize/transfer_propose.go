// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

const (
	transferProposals  = 400 // random points that are rated
	transferNeighbours = 30  // points near each good one that are rated
	transferSteps      = 60  // steps from the best of them
)

// propose returns the point that promises most.
func (t *transfer) propose(g *target, numbers *random.Stream) (Point, error) {
	s := g.stack()
	w := walker{space: t.space, numbers: numbers, rate: s.rate}
	var best []float64
	rating := math.Inf(1)
	try := func(u []float64) {
		if v := s.rate(u); v < rating {
			best, rating = slices.Clone(u), v
		}
	}
	u := make([]float64, t.space.Len())
	random := func() []float64 {
		for i := range u {
			u[i] = numbers.Float()
		}
		return u
	}
	for range transferProposals {
		try(random())
	}
	for _, start := range t.starts(g) {
		try(start)
		for range transferNeighbours {
			try(w.near(start, 0.2))
		}
	}
	if best != nil {
		best, _ = w.descend(best, rating, transferSteps)
	}
	return novel(g.h, draws, func() Point {
		if best != nil {
			p := t.space.Quantile(best)
			best = nil
			return p
		}
		return t.space.Quantile(random())
	})
}

// starts returns the best point of the search, and of the earlier ones that
// weigh most.
func (t *transfer) starts(g *target) [][]float64 {
	var starts [][]float64
	if best, ok := g.h.Best(); ok {
		starts = append(starts, anywhere(t.space.Unit(best.Point)))
	}
	weights := g.weights(-1)[:len(t.sources)]
	order := ascending(weights)
	slices.Reverse(order)
	for _, s := range order[:min(len(order), 8)] {
		starts = append(starts, t.sources[s].best[0])
	}
	return starts
}

// rate returns how little a point of the unit cube promises: minus the expected
// improvement on the best result, or where there are hardly any the lower
// confidence bound. What cannot be suggested promises nothing.
func (s *stacked) rate(u []float64) float64 {
	p := s.space.Quantile(u)
	if s.h.Contains(p) || !s.space.Feasible(p) {
		return math.Inf(1)
	}
	mean, deviation := s.at(s.features.row(s.space.Unit(p)))
	switch {
	case s.rest == nil:
		return mean - deviation
	case deviation == 0:
		return math.Min(mean-s.best, 0)
	}
	z := (s.best - mean) / deviation
	return -deviation * (z*below(z) + math.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
}
