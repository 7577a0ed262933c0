// SPDX-License-Identifier: Apache-2.0

package parzen

import (
	"math"
	"slices"
)

// Mixture is a density on the unit cube. It is not safe for several goroutines
// at once.
type Mixture struct {
	axes    []Axis
	kernels int
	shares  []float64 // of the kernels, cumulated; what is left of 1 is the prior's
	prior   float64   // logarithm of the prior's share
	peaks   []float64 // by kernel: logarithm of its share and of what makes it integrate to one

	at       [][]float64   // by axis and kernel: where the kernel is
	inverses [][]float64   // by axis and kernel: one divided by its deviation, nil where there is no order or widths are joint
	hit      []float64     // by axis without order: logarithm of the density at the kernel's own value
	miss     []float64     // and at others
	cells    [][][]float64 // by axis, cell or choice, and kernel: logarithm of the density, nil where not asked for yet
	joint    *joint        // nil where widths are not joint

	totals []float64 // of a single axis that is finite: logarithm of the density by cell, where cells are known

	logs  []float64 // scratch of LogDensity, by kernel
	white []float64 // scratch of LogDensity, by axis of joint
}

// Fit returns the mixture of a kernel around each of n rows, with the weights
// of these, which are greater than 0, and that of the prior. The columns hold
// the coordinates of the rows by axis, each from 0 to 1; the mixture keeps
// them. There may be no rows; then prior is greater than 0.
func Fit(axes []Axis, columns [][]float64, weights []float64, prior float64, w Width) *Mixture {
	n, d := len(weights), len(axes)
	m := &Mixture{
		axes: axes, kernels: n, at: columns, inverses: make([][]float64, d), cells: make([][][]float64, d),
		hit: make([]float64, d), miss: make([]float64, d), logs: make([]float64, n),
	}
	m.share(weights, prior)
	if w.Joint && n > 0 {
		m.join(weights, w)
	}
	sorted, widths := make([]placed, n), make([]float64, n)
	normals := slices.Repeat([]float64{1}, n)
	for j := range axes {
		switch a := &axes[j]; {
		case a.Choices > 0:
			m.hit[j], m.miss[j] = choice(a.Choices, n)
			m.cells[j] = make([][]float64, a.Choices)
		case m.joint == nil || !a.joins():
			neighbours(columns[j], widths, sorted)
			m.narrow(j, widths, w.factor(), normals)
			if a.Edges != nil {
				m.cells[j] = make([][]float64, len(a.Edges)-1)
			}
		}
	}
	for i := range m.peaks {
		m.peaks[i] -= math.Log(normals[i])
	}
	return m
}

// share divides the mixture among kernels and prior.
func (m *Mixture) share(weights []float64, prior float64) {
	total := prior
	for _, w := range weights {
		total += w
	}
	m.prior = math.Log(prior / total)
	m.shares, m.peaks = make([]float64, len(weights)), make([]float64, len(weights))
	sum := 0.0
	for i, w := range weights {
		sum += w / total
		m.shares[i], m.peaks[i] = sum, math.Log(w/total)
	}
}

// narrow sets the deviations of the kernels on an axis, and multiplies normals
// by what their densities there are to be divided by.
func (m *Mixture) narrow(j int, widths []float64, factor float64, normals []float64) {
	a := &m.axes[j]
	inverses := make([]float64, m.kernels)
	for i, width := range widths {
		deviation := math.Min(math.Max(width*factor, a.Grain/math.Sqrt(12)), 1)
		inverse := 1 / deviation
		inverses[i] = inverse
		normal := within(m.at[j][i], inverse, 0, 1)
		if a.Edges == nil {
			normal *= deviation * math.Sqrt(2*math.Pi)
		}
		if normals[i] *= normal; normals[i] < 1e-200 { // which only happens on hundreds of axes
			m.peaks[i] -= math.Log(normals[i])
			normals[i] = 1
		}
	}
	m.inverses[j] = inverses
}

// choice returns the logarithms of the density of a kernel among n at its own
// value and at others of an axis without order: a weight of one is at its own,
// and one of 1/(n+1), as in Optuna, at each.
func choice(choices, n int) (hit, miss float64) {
	spread := 1 / (float64(n) + 1)
	c := float64(choices)
	total := 1 + c*spread
	return math.Log(c * (1 + spread) / total), math.Log(c * spread / total)
}
