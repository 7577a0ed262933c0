// SPDX-License-Identifier: Apache-2.0

package tpe

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/parzen"
)

// Group is coordinates that are modelled together: points have all of them or none.
type Group struct {
	Coordinates []int
	Axes        []parzen.Axis // of the coordinates
}

// Model says how its parts are fitted and asked.
type Model struct {
	// Groups are those of a point's coordinates that are modelled, in the order
	// in which their values are drawn.
	Groups []Group
	// Joint is set where there are groups of several coordinates.
	Joint bool
	// Prior is how many trials the uniform distribution counts as.
	Prior float64
	// Candidates is how many points are drawn for a suggestion.
	Candidates int
}

// densities are those of good and other trials over a group.
type densities struct {
	good, bad *parzen.Mixture
}

// fit models a group by those trials that have it.
func (m *Model) fit(g Group, d Division) densities {
	width := parzen.Width{Joint: m.Joint}
	return densities{
		good: fitMixture(g, d.evidence, d.good, m.Prior, width),
		bad:  fitMixture(g, d.evidence, d.bad, m.Prior, parzen.Width{}),
	}
}

func fitMixture(g Group, e *Evidence, trials []weighted, prior float64, w parzen.Width) *parzen.Mixture {
	columns := make([][]float64, len(g.Coordinates))
	numbers := make([]float64, 0, len(g.Coordinates)*len(trials))
	weights := make([]float64, 0, len(trials))
	for _, t := range trials {
		if !math.IsNaN(e.example(t.id).point[g.Coordinates[0]]) {
			weights = append(weights, t.weight)
		}
	}
	for j, coordinate := range g.Coordinates {
		from := len(numbers)
		for _, t := range trials {
			if u := e.example(t.id).point[coordinate]; !math.IsNaN(u) {
				numbers = append(numbers, u)
			}
		}
		columns[j] = numbers[from:len(numbers):len(numbers)]
	}
	return parzen.Fit(g.Axes, columns, weights, prior, w)
}

// candidates returns points of the group drawn from the model of the good
// trials, the best first.
func (d densities) candidates(n, dimensions int, uniform func() float64) [][]float64 {
	type candidate struct {
		at    []float64
		score float64
	}
	drawn := make([]candidate, n)
	numbers := make([]float64, n*dimensions)
	for i := range drawn {
		x := numbers[i*dimensions : (i+1)*dimensions]
		d.good.Draw(uniform, x)
		drawn[i] = candidate{x, d.good.LogDensity(x) - d.bad.LogDensity(x)}
	}
	slices.SortStableFunc(drawn, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	points := make([][]float64, n)
	for i, c := range drawn {
		points[i] = c.at
	}
	return points
}

// Propose returns a function that returns one proposal after the other, the best
// first. Those coordinates of a point that are not modelled are 0.5. A group is
// drawn where exists says so of the point so far; uniform returns numbers between
// 0 and 1.
func (m *Model) Propose(d Division, exists func(g Group, point []float64) bool, dimensions int, uniform func() float64) func() []float64 {
	fitted := make([]densities, len(m.Groups))
	queues := make([][][]float64, len(m.Groups))
	next := func(g int) []float64 {
		if len(queues[g]) == 0 {
			if fitted[g].good == nil {
				fitted[g] = m.fit(m.Groups[g], d)
			}
			queues[g] = fitted[g].candidates(m.Candidates, len(m.Groups[g].Coordinates), uniform)
		}
		x := queues[g][0]
		queues[g] = queues[g][1:]
		return x
	}
	return func() []float64 {
		point := make([]float64, dimensions)
		for i := range point {
			point[i] = 0.5
		}
		for g, group := range m.Groups {
			if !exists(group, point) {
				continue
			}
			for j, x := range next(g) {
				point[group.Coordinates[j]] = x
			}
		}
		return point
	}
}
