// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"math"
	"slices"
)

// adam is the state of the optimizer Adam (Kingma and Ba, 2015, algorithm 1).
type adam struct {
	steps         float64
	first, second []float64 // moments of the gradient
}

func newAdam(n int) adam { return adam{first: make([]float64, n), second: make([]float64, n)} }

func (a adam) clone() adam {
	return adam{steps: a.steps, first: slices.Clone(a.first), second: slices.Clone(a.second)}
}

// step moves x against a gradient.
func (a *adam) step(x, gradient []float64, rate float64) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	a.steps++
	rate *= math.Sqrt(1-math.Pow(beta2, a.steps)) / (1 - math.Pow(beta1, a.steps))
	for i, g := range gradient {
		a.first[i] += (1 - beta1) * (g - a.first[i])
		a.second[i] += (1 - beta2) * (g*g - a.second[i])
		x[i] -= rate * a.first[i] / (math.Sqrt(a.second[i]) + epsilon)
	}
}
