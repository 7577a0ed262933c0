// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"math"
	"slices"
)

const (
	trusted = 2  // deviations around the mean in which the optimum of a model is looked for
	rounds  = 30 // of the descent by coordinates
)

// optimum returns the point with the least value of the polynomial within a
// box, the part of the cube that is at most trusted deviations of a
// distribution from its mean: the end of a descent by coordinates from there.
func (m *model) optimum(d *Distribution) []float64 {
	n := len(d.mean)
	y, lo, hi := make([]float64, n), make([]float64, n), make([]float64, n)
	for i, mean := range d.mean {
		reach := trusted * d.Deviation(i)
		lo[i] = (math.Max(0, mean-reach) - m.centre[i]) / m.spread[i]
		hi[i] = (math.Min(1, mean+reach) - m.centre[i]) / m.spread[i]
		y[i] = (mean - m.centre[i]) / m.spread[i]
	}
	for range rounds {
		moved := 0.0
		for i := range y {
			before := y[i]
			y[i] = m.along(y, i, lo[i], hi[i])
			moved = math.Max(moved, math.Abs(y[i]-before))
		}
		if moved < 1e-9 {
			break
		}
	}
	x := slices.Clone(d.mean)
	for i, v := range y {
		if v = m.centre[i] + m.spread[i]*v; !math.IsNaN(v) {
			x[i] = math.Min(math.Max(v, 0), 1)
		}
	}
	return x
}

// along returns the coordinate i from lo to hi at which the polynomial is
// least, the others being those of y.
func (m *model) along(y []float64, i int, lo, hi float64) float64 {
	n := len(y)
	slope, curvature := m.coefficients[1+i], 0.0
	if m.form != linear {
		curvature = m.coefficients[1+n+i]
	}
	if m.form == products {
		product := m.coefficients[1+2*n:]
		for j := range n {
			if j < i {
				slope += product[i*(i-1)/2+j] * y[j]
			} else if j > i {
				slope += product[j*(j-1)/2+i] * y[j]
			}
		}
	}
	if curvature > 0 {
		return math.Min(math.Max(-slope/(2*curvature), lo), hi)
	}
	if (curvature*lo+slope)*lo <= (curvature*hi+slope)*hi {
		return lo
	}
	return hi
}
