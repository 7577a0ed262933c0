// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Model is a Gaussian process given observations. It does not change, and may
// be used by several goroutines at once.
type Model struct {
	kernel  Kernel
	scaler  scaler
	inputs  [][]float64 // scaled
	outputs []float64
	factor  triangle  // of the covariance of the observations
	weights []float64 // its inverse times the outputs
}

// New returns the process with a kernel, given that the inputs, a row of
// features each, had some outputs. groups tells for each feature which length
// of the kernel is its own. Where rounding keeps the covariance from being
// positive definite, more noise is assumed.
func New(k Kernel, groups []int, inputs [][]float64, outputs []float64) *Model {
	m := &Model{kernel: k, scaler: newScaler(groups, k.Lengths), outputs: outputs}
	m.inputs = scaled(m.scaler, inputs)
	n := len(inputs)
	for {
		m.factor = newTriangle(n)
		for i := range n {
			for j := range i {
				m.factor[i][j] = m.kernel.between(m.inputs[i], m.inputs[j])
			}
			m.factor[i][i] = m.kernel.variance(m.inputs[i]) + m.kernel.Noise
		}
		if m.factor.factor() {
			break
		}
		m.kernel.Noise = max(10*m.kernel.Noise, 1e-10*(m.kernel.Scale+m.kernel.Trend), 1e-300)
	}
	m.solve()
	return m
}

func scaled(s scaler, inputs [][]float64) [][]float64 {
	entries := make([]float64, len(inputs)*len(s.groups))
	rows := make([][]float64, len(inputs))
	for i, x := range inputs {
		rows[i], entries = entries[:len(x):len(x)], entries[len(x):]
		s.scale(x, rows[i])
	}
	return rows
}

func (m *Model) solve() {
	m.weights = slices.Clone(m.outputs)
	m.factor.forward(m.weights)
	m.factor.backward(m.weights)
}

// Kernel returns the kernel, with the noise that was assumed.
func (m *Model) Kernel() Kernel { return m.kernel }

// Len returns how many observations the model has.
func (m *Model) Len() int { return len(m.inputs) }

// Smoothed returns the mean of the function at each observation: its output
// without what the model takes to be noise.
func (m *Model) Smoothed() []float64 {
	means := slices.Clone(m.outputs)
	floats.AddScaled(means, -m.kernel.Noise, m.weights)
	return means
}

// Given returns the model given one more observation, at a cost that grows
// with the square of their number. It fails, and returns m, where the
// observation is so near to others that rounding hides it.
func (m *Model) Given(input []float64, output float64) *Model {
	next := *m
	x := make([]float64, len(input))
	m.scaler.scale(input, x)
	row := append(m.covariances(x), m.kernel.variance(x)+m.kernel.Noise)
	next.inputs = append(slices.Clip(m.inputs), x)
	next.outputs = append(slices.Clip(m.outputs), output)
	next.factor = append(slices.Clip(m.factor), row)
	if !next.factor.factorRow(m.Len()) {
		return m
	}
	next.solve()
	return &next
}

func (m *Model) covariances(scaled []float64) []float64 {
	row := make([]float64, len(m.inputs), len(m.inputs)+1)
	for i, x := range m.inputs {
		row[i] = m.kernel.between(scaled, x)
	}
	return row
}

// Predict returns mean and variance of the function at an input. The variance
// is that of the function, without the noise of an observation.
func (m *Model) Predict(input []float64) (mean, variance float64) {
	x := make([]float64, len(input))
	m.scaler.scale(input, x)
	k := m.covariances(x)
	mean = floats.Dot(k, m.weights)
	m.factor.forward(k)
	return mean, m.positive(m.kernel.variance(x)-floats.Dot(k, k), x)
}

// positive keeps a variance from being lost in rounding.
func (m *Model) positive(variance float64, scaled []float64) float64 {
	return max(variance, 1e-14*m.kernel.variance(scaled))
}

// Mean returns the mean at an input, which costs less than Predict.
func (m *Model) Mean(input []float64) float64 {
	x := make([]float64, len(input))
	m.scaler.scale(input, x)
	mean := 0.0
	for i, y := range m.inputs {
		mean += m.weights[i] * m.kernel.between(x, y)
	}
	return mean
}

// PredictGradient does as Predict, and writes the derivatives of both by the
// input.
func (m *Model) PredictGradient(input, meanGradient, varianceGradient []float64) (mean, variance float64) {
	x := make([]float64, len(input))
	m.scaler.scale(input, x)
	k := m.covariances(x)
	mean = floats.Dot(k, m.weights)
	m.factor.forward(k)
	variance = m.positive(m.kernel.variance(x)-floats.Dot(k, k), x)
	m.factor.backward(k)
	clear(meanGradient)
	clear(varianceGradient)
	for i, y := range m.inputs {
		// The derivative of k(x, y) by x is −near·(x − y) + far·y.
		near, far := m.kernel.slopes(x, y)
		mean, variance := m.weights[i], -2*k[i]
		for j, v := range x {
			d := far*y[j] - near*(v-y[j])
			meanGradient[j] += mean * d
			varianceGradient[j] += variance * d
		}
	}
	if m.kernel.Trend > 0 {
		floats.AddScaled(varianceGradient, 4*m.kernel.Trend*(1+floats.Dot(x, x)), x)
	}
	floats.Mul(meanGradient, m.scaler.inverse)
	floats.Mul(varianceGradient, m.scaler.inverse)
	return mean, variance
}

func (k *Kernel) slopes(a, b []float64) (near, far float64) {
	r2 := 0.0
	for i, v := range a {
		d := v - b[i]
		r2 += d * d
	}
	_, near = matern(r2)
	if k.Trend > 0 {
		far = 2 * k.Trend * (1 + floats.Dot(a, b))
	}
	return near * k.Scale, far
}
