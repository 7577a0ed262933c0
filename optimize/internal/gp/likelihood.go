// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// likelihood is minus the logarithm of the posterior density of a kernel's
// parameters, as a function of their logarithms: the length of each group,
// then scale, trend and noise.
type likelihood struct {
	prior   Prior
	groups  []int
	inputs  [][]float64
	outputs []float64

	covariance, slopes, products triangle
	weights                      []float64
}

func newLikelihood(p Prior, groups []int, inputs [][]float64, outputs []float64) *likelihood {
	n := len(inputs)
	return &likelihood{
		prior: p, groups: groups, inputs: inputs, outputs: outputs,
		covariance: newTriangle(n), slopes: newTriangle(n), products: newTriangle(n),
		weights: make([]float64, n),
	}
}

// at returns the value at some parameters, and writes the gradient. The value
// is +Inf where the covariance is not positive definite.
func (l *likelihood) at(logs, gradient []float64) float64 {
	k := l.prior.kernel(logs)
	s := newScaler(l.groups, k.Lengths)
	x := scaled(s, l.inputs)
	l.fill(&k, x)
	if !l.covariance.factor() {
		return math.Inf(1)
	}
	copy(l.weights, l.outputs)
	l.covariance.forward(l.weights)
	value := (floats.Dot(l.weights, l.weights) + l.covariance.logDeterminant()) / 2
	l.covariance.backward(l.weights)
	l.differentiate(&k, x, gradient)
	return value + l.prior.penalty(logs, gradient)
}

// fill computes the covariance, and for each pair what its derivatives need.
func (l *likelihood) fill(k *Kernel, x [][]float64) {
	for i, a := range x {
		for j, b := range x[:i] {
			r2 := 0.0
			for f, v := range a {
				d := v - b[f]
				r2 += d * d
			}
			value, slope := matern(r2)
			l.covariance[i][j], l.slopes[i][j] = k.Scale*value, k.Scale*slope
			if k.Trend > 0 {
				p := 1 + floats.Dot(a, b)
				l.products[i][j] = p
				l.covariance[i][j] += k.Trend * p * p
			}
		}
		l.products[i][i] = 1 + floats.Dot(a, a)
		l.covariance[i][i] = k.variance(a) + k.Noise
	}
}

// differentiate writes the gradient of the likelihood: half the trace of
// (K⁻¹ − α·αᵀ)·dK for each parameter, α being K⁻¹·y (Rasmussen and Williams
// 2006, equation 5.9).
func (l *likelihood) differentiate(k *Kernel, x [][]float64, gradient []float64) {
	clear(gradient)
	inverse := l.covariance.inverse()
	lengths := len(k.Lengths)
	features := make([]float64, len(l.groups))
	var trend, trace float64
	for i, a := range x {
		for j, b := range x[:i] {
			w := inverse[i][j] - l.weights[i]*l.weights[j]
			near, far := w*l.slopes[i][j], 0.0
			p := l.products[i][j]
			if k.Trend > 0 {
				trend += 2 * w * p * p
				far = 4 * w * k.Trend * p
			}
			for f, v := range a {
				d := v - b[f]
				features[f] += near*d*d - far*v*b[f]
			}
		}
		w := inverse[i][i] - l.weights[i]*l.weights[i]
		trace += w
		p := l.products[i][i]
		trend += w * p * p
		for f, v := range a {
			features[f] -= 2 * w * k.Trend * p * v * v
		}
	}
	for f, g := range l.groups {
		gradient[g] += features[f]
	}
	gradient[lengths+1] = trend * k.Trend / 2
	gradient[lengths+2] = trace * k.Noise / 2
	// The three parts of K add up to it, and the trace of (K⁻¹ − α·αᵀ)·K is
	// n − yᵀ·α.
	all := (float64(len(x)) - floats.Dot(l.outputs, l.weights)) / 2
	gradient[lengths] = all - gradient[lengths+1] - gradient[lengths+2]
}
