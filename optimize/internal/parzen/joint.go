// SPDX-License-Identifier: Apache-2.0

package parzen

import (
	"math"
	"slices"
)

// joint is the covariance that the kernels have in common on fine axes.
type joint struct {
	axes  []int       // which it covers
	lower [][]float64 // Cholesky factor of the covariance, without its diagonal
	scale []float64   // the diagonal
	at    [][]float64 // by axis of the mixture: where the kernels are
	white [][]float64 // by axis covered and kernel: where the kernels are in coordinates in which they are round
}

// correlated is the number of axes up to which a covariance has correlations:
// with more of them the few rows of a mixture cannot tell any, and time would
// be lost.
const correlated = 64

// join gives the kernels a covariance on those axes that it can cover.
func (m *Mixture) join(weights []float64, w Width) {
	c := &joint{at: m.at}
	for j := range m.axes {
		if m.axes[j].joins() {
			c.axes = append(c.axes, j)
		}
	}
	if len(c.axes) == 0 {
		return
	}
	c.factorize(c.covariance(m.axes, weights, w))
	m.joint, m.white = c, make([]float64, len(c.axes))
	c.whiten()
	m.normalize()
}

// covariance returns Scott's rule for the weighted rows. So that few rows do
// not make it too flat, it counts a tenth of a row more, with the deviation of
// the uniform distribution and no correlation, and takes correlations for the
// smaller the fewer rows there are for each axis.
func (c *joint) covariance(axes []Axis, weights []float64, w Width) [][]float64 {
	d, n := len(c.axes), effective(weights)
	const extra = 0.1
	scale := w.factor() * scott(weights, d)
	scale *= scale * n / (n + extra)
	trust := n / (n + float64(d))
	sum := 0.0
	for _, weight := range weights {
		sum += weight
	}
	centred := make([][]float64, d)
	for a, j := range c.axes {
		centred[a] = centre(c.at[j], weights, sum)
	}
	covariance := make([][]float64, d)
	for a, j := range c.axes {
		covariance[a] = make([]float64, a+1)
		for b := 0; b < a && d <= correlated; b++ {
			covariance[a][b] = trust * scale * product(centred[a], centred[b], weights) / sum
		}
		grain := axes[j].grain()
		covariance[a][a] = scale*(product(centred[a], centred[a], weights)/sum+extra/n/12) + narrowest*narrowest + grain*grain/12
	}
	return covariance
}

// grain returns the width of the cells of the axis, 0 where it has none.
func (a *Axis) grain() float64 {
	if a.Edges != nil {
		return 1 / float64(len(a.Edges)-1)
	}
	return a.Grain
}

func centre(at, weights []float64, sum float64) []float64 {
	mean := 0.0
	for i, w := range weights {
		mean += w * at[i] / sum
	}
	centred := make([]float64, len(at))
	for i := range at {
		centred[i] = at[i] - mean
	}
	return centred
}

func product(a, b, weights []float64) float64 {
	sum := 0.0
	for i, w := range weights {
		sum += w * a[i] * b[i]
	}
	return sum
}

// factorize sets the Cholesky factor of the lower half of a covariance.
func (c *joint) factorize(covariance [][]float64) {
	d := len(covariance)
	c.lower, c.scale = make([][]float64, d), make([]float64, d)
	for i, row := range covariance {
		if d <= correlated {
			c.lower[i] = row[:i]
		}
		for j := range c.lower[i] {
			row[j] = (row[j] - dot(row[:j], covariance[j])) / c.scale[j]
		}
		rest := row[i] - dot(c.lower[i], row)
		c.scale[i] = math.Sqrt(math.Max(rest, narrowest*narrowest/100)) // less by rounding alone
	}
}

// dot returns the sum of products of the numbers of a with the first of b.
func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// whiten computes where the kernels are in round coordinates.
func (c *joint) whiten() {
	c.white = make([][]float64, len(c.axes))
	for a, j := range c.axes {
		row := slices.Clone(c.at[j])
		for b, l := range c.lower[a] {
			for i, v := range c.white[b] {
				row[i] -= l * v
			}
		}
		for i := range row {
			row[i] /= c.scale[a]
		}
		c.white[a] = row
	}
}

// normalize makes each kernel integrate to one, as nearly as the product of
// the masses in the unit interval by axis tells.
func (m *Mixture) normalize() {
	c := m.joint
	determinant := 0.0
	for a := range c.axes {
		determinant += math.Log(c.scale[a] * math.Sqrt(2*math.Pi))
	}
	for i := range m.peaks {
		m.peaks[i] -= determinant
	}
	for a, j := range c.axes {
		variance := c.scale[a] * c.scale[a]
		for _, l := range c.lower[a] {
			variance += l * l
		}
		inverse := 1 / math.Sqrt(variance)
		for i, at := range m.at[j] {
			m.peaks[i] -= math.Log(within(at, inverse, 0, 1))
		}
	}
}

// add adds the logarithm of each kernel's density at x, without its constant.
func (c *joint) add(logs, x, white []float64) {
	for a, j := range c.axes {
		v := x[j]
		for b, l := range c.lower[a] {
			v -= l * white[b]
		}
		white[a] = v / c.scale[a]
		at, v := c.white[a][:len(logs)], white[a]
		for i := range logs {
			z := v - at[i]
			logs[i] -= 0.5 * z * z
		}
	}
}

// draw sets the covered axes of x to a random point of a kernel. Each axis in
// turn is drawn given those before it, and within the unit interval.
func (c *joint) draw(k int, uniform func() float64, x []float64) {
	z := make([]float64, len(c.axes))
	for a, j := range c.axes {
		mean := c.at[j][k]
		for b, l := range c.lower[a] {
			mean += l * z[b]
		}
		deviation := c.scale[a]
		x[j] = truncated(mean, deviation, 0, 1, uniform())
		z[a] = (x[j] - mean) / deviation
	}
}
