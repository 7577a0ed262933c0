// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/acquisition"
	"diwan.dev/diwan/optimize/internal/forest"
)

// ProposeByTrees returns points to evaluate next, the best first, for at least
// one observation, as a model of trees expects most of them. Trees have no
// gradient, so that candidates are compared alone. Several objectives are
// combined with random weights, and what is not feasible counts as the worst.
func (s *Search) ProposeByTrees(d Data, c forest.Config, seed uint64, q Query) [][]float64 {
	o := d.objective(0, 0)
	if d.Objectives > 1 {
		o = d.scalarised(randomWeights(d.Objectives, q.Random), 0)
	}
	worst := slices.Max(o.outputs)
	for i := range o.outputs {
		if !d.Observations[i].feasible() {
			o.outputs[i] = worst
		}
	}
	points := make([][]float64, len(d.Observations), len(d.Observations)+len(d.Pending))
	for i := range points {
		points[i] = d.Observations[i].Point
	}
	best := slices.Min(o.outputs)
	m := forest.Fit(points, s.categories(), o.outputs, c, seed)
	if len(d.Pending) > 0 {
		outputs := slices.Clone(o.outputs)
		for _, p := range d.Pending {
			mean, _ := m.Predict(p)
			points, outputs = append(points, p), append(outputs, mean)
		}
		m = forest.Fit(points, s.categories(), outputs, c, seed)
	}
	f, slopes := q.Rule.function(best), make([]acquisition.Slope, 1)
	rate := func(point []float64) float64 {
		mean, deviation := m.Predict(point)
		return f([]acquisition.Prediction{{Mean: mean, Deviation: math.Max(deviation, 1e-9)}}, slopes)
	}
	var proposals [][]float64
	for _, c := range s.candidates(treeCandidates*s.config.Candidates, rate, d.bestPoints([]outcome{o}), q) {
		proposals = append(proposals, c.point)
	}
	return proposals
}

// treeCandidates is how many times as many candidates are compared where none
// of them is improved.
const treeCandidates = 4

// categories returns how many values each categorical dimension has, 0 for the
// others.
func (s *Search) categories() []int {
	categories := make([]int, len(s.features.dimensions))
	for i, d := range s.features.dimensions {
		if d.Categorical {
			categories[i] = d.Values
		}
	}
	return categories
}
