// SPDX-License-Identifier: Apache-2.0

package bayes

import "math"

// Dimension is one parameter of the unit cube.
type Dimension struct {
	// Values is how many values there are, 0 for a continuum.
	Values int
	// Categorical values have no order, and are the middles of equal parts of
	// [0, 1].
	Categorical bool
	// Conditional is set where the coordinate may be NaN: the parameter then
	// has no value.
	Conditional bool
}

// features says how a point of the cube becomes a row of numbers whose
// Euclidean distances are those between points: a categorical value is a
// corner of a simplex of edge 1, and a missing value is away from every
// present one, in a direction of its own.
type features struct {
	dimensions []Dimension
	groups     []int // the dimension of each feature
	first      []int // the first feature of each dimension
}

func newFeatures(dimensions []Dimension) features {
	f := features{dimensions: dimensions}
	for i, d := range dimensions {
		f.first = append(f.first, len(f.groups))
		for range d.features() {
			f.groups = append(f.groups, i)
		}
	}
	return f
}

func (d Dimension) features() int {
	n := 1
	if d.Categorical {
		n = d.Values
	}
	if d.Conditional {
		n++
	}
	return n
}

// category returns the index of the value of a finite dimension at u.
func (d Dimension) category(u float64) int {
	return min(max(int(u*float64(d.Values)), 0), d.Values-1)
}

// of returns the features of a point. A feature is 1/2 where it says nothing,
// which is where kernels have their middle.
func (f features) of(u []float64) []float64 {
	row := make([]float64, len(f.groups))
	f.write(u, row)
	return row
}

func (f features) write(u, row []float64) {
	for i, d := range f.dimensions {
		part := row[f.first[i]:][:d.features()]
		for j := range part {
			part[j] = 0.5
		}
		switch {
		case math.IsNaN(u[i]):
			part[len(part)-1] = 1
		case d.Categorical:
			part[d.category(u[i])] += math.Sqrt2 / 2
		default:
			part[0] = u[i]
		}
	}
}
