// SPDX-License-Identifier: Apache-2.0

package cma

import "math"

// Population returns the number of points of a generation in n dimensions
// that the tutorial recommends, 4 + ⌊3 ln n⌋ (eq. 48).
func Population(n int) int { return 4 + int(3*math.Log(float64(n))) }

// rates are the constants of a strategy: table 1 of the tutorial. Names are
// the tutorial's.
type rates struct {
	weights []float64 // for each point of a generation, from best to worst
	parents int       // μ: how many of them are positive
	mass    float64   // μ_eff: variance effective selection mass

	stepPath, damping    float64 // c_σ, d_σ
	path                 float64 // c_c
	rankOne, rankParents float64 // c_1, c_μ
	length               float64 // E‖N(0, I)‖
}

// newRates returns the constants for n dimensions and a generation of size
// points. A separable strategy, which learns n numbers and not n²/2, learns
// (n+2)/3 times as fast (R. Ros and N. Hansen, "A simple modification in
// CMA-ES achieving linear time and space complexity", 2008).
func newRates(n, size int, separable bool) rates {
	d := float64(n)
	r := rates{weights: make([]float64, size), parents: size / 2}
	var sum, squares [2]float64 // of positive weights, and of the others
	for i := range r.weights {
		w := math.Log((float64(size)+1)/2) - math.Log(float64(i+1))
		r.weights[i] = w
		side := 0
		if i >= r.parents {
			side = 1
		}
		sum[side] += math.Abs(w)
		squares[side] += w * w
	}
	r.mass = sum[0] * sum[0] / squares[0]
	r.stepPath = (r.mass + 2) / (d + r.mass + 5)
	r.damping = 1 + 2*math.Max(0, math.Sqrt((r.mass-1)/(d+1))-1) + r.stepPath
	r.path = (4 + r.mass/d) / (d + 4 + 2*r.mass/d)
	r.length = math.Sqrt(d) * (1 - 1/(4*d) + 1/(21*d*d))
	faster := 1.0
	if separable {
		faster = (d + 2) / 3
	}
	r.rankOne = math.Min(1, faster*2/((d+1.3)*(d+1.3)+r.mass))
	r.rankParents = math.Min(1-r.rankOne, faster*2*(0.25+r.mass+1/r.mass-2)/((d+2)*(d+2)+r.mass))

	// Negative weights: as large as keeps C positive definite (eqs. 50 to 53).
	against := 1.0
	if r.rankParents > 0 && squares[1] > 0 {
		mass := sum[1] * sum[1] / squares[1]
		against = min(1+r.rankOne/r.rankParents, 1+2*mass/(r.mass+2), (1-r.rankOne-r.rankParents)/(d*r.rankParents))
	}
	for i := range r.weights {
		switch {
		case i < r.parents:
			r.weights[i] /= sum[0]
		case sum[1] > 0:
			r.weights[i] *= against / sum[1]
		}
	}
	return r
}
