// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// This file holds what evolutionary samplers do to points. They work on the
// unit cube, where each parameter's distribution is uniform, so that a change
// is as large in terms of what the user thinks likely, whatever the scale.

// inherit returns the coordinates in the unit cube that a child of a point
// begins with. A parameter that the parent does not have gets a random one, as
// the child may have it.
func inherit(parent Point, numbers *random.Stream) []float64 {
	u := parent.space.Unit(parent)
	for i := range u {
		if fresh := numbers.Float(); math.IsNaN(u[i]) {
			u[i] = fresh
		}
	}
	return u
}

// mutate changes coordinate i of u. A category becomes another one; any other
// value moves by polynomial mutation with a distribution index (K. Deb and
// S. Agrawal, "A niched-penalty approach for constraint handling in genetic
// algorithms", 1999): the larger the index the nearer; but by at least a step.
func mutate(s *Space, u []float64, i int, index float64, numbers *random.Stream) {
	a := &s.axes[i]
	if a.count == 1 {
		return
	}
	if a.Kind == KindCategorical {
		u[i] = otherCell(u[i], a.count, numbers)
		return
	}
	before := a.quantile(u[i])
	up := numbers.Uint64()>>63 == 1
	moved := polynomial(u[i], index, up, numbers.Float())
	if a.count > 0 && a.quantile(moved) == before {
		moved = a.unit(a.beside(before, up))
	}
	u[i] = moved
}

// polynomial moves u, at random by r, towards 1 or 0, and no farther.
func polynomial(u, index float64, up bool, r float64) float64 {
	part := 1 - math.Pow(1-r, 1/(index+1))
	if up {
		return u + part*(1-u)
	}
	return u - part*u
}

// otherCell returns the middle of a random one of count equal parts of the
// unit interval, but not of that which u is in.
func otherCell(u float64, count uint64, numbers *random.Stream) float64 {
	own := min(uint64(u*float64(count)), count-1)
	other := numbers.Uint64() % (count - 1)
	if other >= own {
		other++
	}
	return (float64(other) + 0.5) / float64(count)
}

// beside returns the coordinate of the value next to another by size, above it
// or below; at an end, the only one that there is.
func (a *axis) beside(coordinate float64, up bool) float64 {
	k := a.index(coordinate)
	if a.rank != nil {
		k = uint64(a.rank[k])
	}
	if k == 0 || up && k+1 < a.count {
		k++
	} else {
		k--
	}
	if a.sorted != nil {
		k = uint64(a.sorted[k])
	}
	return a.coordinate(k)
}

// activeAxes returns the axes that a point has a value of, and that have more
// than one.
func activeAxes(p Point) (axes []int) {
	for i, at := range p.at {
		if !math.IsNaN(at) && p.space.axes[i].count != 1 {
			axes = append(axes, i)
		}
	}
	return axes
}

// crossover mixes two parents into one child. A category comes from the other
// parent with the probability swapping; of any other value, with the same
// probability, the child gets one near either by simulated binary crossover
// with a distribution index (K. Deb and R. Agrawal, "Simulated binary crossover
// for continuous search space", 1995).
func crossover(s *Space, one, other []float64, swapping, index float64, numbers *random.Stream) []float64 {
	child := slices.Clone(one)
	for i := range child {
		swap, r, side := numbers.Float() < swapping, numbers.Float(), numbers.Uint64()>>63 == 1
		switch {
		case s.axes[i].Kind == KindCategorical || s.axes[i].count == 2:
			if swap {
				child[i] = other[i]
			}
		case swap:
			child[i] = simulatedBinary(one[i], other[i], index, r, side)
		}
	}
	return child
}

// simulatedBinary returns one of the two children of a and b, at random by r.
func simulatedBinary(a, b, index, r float64, side bool) float64 {
	spread := math.Pow(2*r, 1/(index+1))
	if r > 0.5 {
		spread = math.Pow(1/(2*(1-r)), 1/(index+1))
	}
	if side {
		spread = -spread
	}
	return math.Min(1, math.Max(0, (a+b)/2+spread*(a-b)/2))
}
