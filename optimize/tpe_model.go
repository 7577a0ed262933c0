// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/parzen"
	"diwan.dev/diwan/optimize/internal/random"
)

// tpeGroup is parameters that are modelled together: they exist under the same
// condition.
type tpeGroup struct {
	axes  []int // in the space
	cubes []parzen.Axis
}

// tpeGroups returns the groups of a space, those of parents before those of
// their children. Parameters with a single value are in none.
func tpeGroups(space *Space, multivariate bool) []tpeGroup {
	var groups []tpeGroup
	for _, i := range space.order {
		a := &space.axes[i]
		if a.count == 1 {
			continue
		}
		same := func(g tpeGroup) bool {
			first := &space.axes[g.axes[0]]
			return multivariate && first.parent == a.parent && slices.Equal(first.where, a.where)
		}
		at := slices.IndexFunc(groups, same)
		if at < 0 {
			at = len(groups)
			groups = append(groups, tpeGroup{})
		}
		groups[at].axes = append(groups[at].axes, i)
		groups[at].cubes = append(groups[at].cubes, a.cube())
	}
	return groups
}

// fine is the number of values from which an axis is modelled as continuous.
const fine = 32

// cube returns how the axis divides the unit interval.
func (a *axis) cube() parzen.Axis {
	switch {
	case !a.ordered():
		return parzen.Axis{Choices: int(a.count)}
	case a.count == 0:
		return parzen.Axis{}
	case a.count > fine:
		return parzen.Axis{Grain: 1 / float64(a.count)}
	case !a.shaped():
		return parzen.Axis{Edges: parzen.Even(int(a.count))}
	}
	edges := make([]float64, a.count+1)
	for k := range a.count - 1 {
		edges[k+1] = math.Max(a.cumulate(a.coordinate(k)+a.Step/2), edges[k])
	}
	edges[a.count] = 1
	return parzen.Axis{Edges: edges}
}

// tpeModel is the densities of good and other trials over a group.
type tpeModel struct {
	good, bad *parzen.Mixture
}

// fit models a group by those trials that have it.
func (s *tpe) fit(g tpeGroup, d tpeDivision) tpeModel {
	width := parzen.Width{Joint: s.Multivariate}
	return tpeModel{
		good: fitMixture(g, d.evidence, d.good, s.PriorWeight, width),
		bad:  fitMixture(g, d.evidence, d.bad, s.PriorWeight, parzen.Width{}),
	}
}

func fitMixture(g tpeGroup, e *tpeEvidence, trials []tpeWeighted, prior float64, w parzen.Width) *parzen.Mixture {
	columns := make([][]float64, len(g.axes))
	numbers := make([]float64, 0, len(g.axes)*len(trials))
	weights := make([]float64, 0, len(trials))
	for _, t := range trials {
		if !math.IsNaN(e.unit(t.id)[g.axes[0]]) {
			weights = append(weights, t.weight)
		}
	}
	for j, axis := range g.axes {
		from := len(numbers)
		for _, t := range trials {
			if u := e.unit(t.id)[axis]; !math.IsNaN(u) {
				numbers = append(numbers, u)
			}
		}
		columns[j] = numbers[from:len(numbers):len(numbers)]
	}
	return parzen.Fit(g.cubes, columns, weights, prior, w)
}

// candidates returns points of the group drawn from the model of the good
// trials, the best first.
func (m tpeModel) candidates(n, dimensions int, uniform func() float64) [][]float64 {
	type candidate struct {
		at    []float64
		score float64
	}
	drawn := make([]candidate, n)
	numbers := make([]float64, n*dimensions)
	for i := range drawn {
		x := numbers[i*dimensions : (i+1)*dimensions]
		m.good.Draw(uniform, x)
		drawn[i] = candidate{x, m.good.LogDensity(x) - m.bad.LogDensity(x)}
	}
	slices.SortStableFunc(drawn, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	points := make([][]float64, n)
	for i, c := range drawn {
		points[i] = c.at
	}
	return points
}

// tpeRounds is how often candidates are drawn anew where none of them will do.
const tpeRounds = 4

// propose returns a function that returns one proposal after the other, the
// best first.
func (s *tpe) propose(space *Space, d tpeDivision, numbers *random.Stream) func() Point {
	models := make([]tpeModel, len(s.groups))
	queues := make([][][]float64, len(s.groups))
	next := func(g int) []float64 {
		if len(queues[g]) == 0 {
			if models[g].good == nil {
				models[g] = s.fit(s.groups[g], d)
			}
			queues[g] = models[g].candidates(s.Candidates, len(s.groups[g].axes), numbers.Float)
		}
		x := queues[g][0]
		queues[g] = queues[g][1:]
		return x
	}
	return func() Point {
		u := make([]float64, space.Len())
		for i := range u {
			u[i] = 0.5
		}
		for g, group := range s.groups {
			if parent := space.axes[group.axes[0]].parent; parent >= 0 && !space.active(group.axes[0], space.Quantile(u)) {
				continue
			}
			for j, x := range next(g) {
				u[group.axes[j]] = x
			}
		}
		return space.Quantile(u)
	}
}
