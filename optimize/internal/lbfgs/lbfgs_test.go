// SPDX-License-Identifier: Apache-2.0

package lbfgs

import (
	"math"
	"testing"
)

func rosenbrock(x, gradient []float64) float64 {
	sum := 0.0
	clear(gradient)
	for i := range len(x) - 1 {
		a, b := x[i+1]-x[i]*x[i], 1-x[i]
		sum += 100*a*a + b*b
		gradient[i] += -400*a*x[i] - 2*b
		gradient[i+1] += 200 * a
	}
	return sum
}

func box(n int, lower, upper float64) ([]float64, []float64) {
	l, u := make([]float64, n), make([]float64, n)
	for i := range n {
		l[i], u[i] = lower, upper
	}
	return l, u
}

// TestMinimum checks known minima of Rosenbrock's function, inside the box and
// on its border: with x₀ at most 0.5 the rest follows x_{i+1} = x_i² nearly,
// and in two dimensions exactly, so that the value there is (1 − 0.5)².
func TestMinimum(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		n            int
		lower, upper float64
		value        float64
		tolerance    float64
	}{
		"Inside":   {6, -2, 2, 0, 1e-8},
		"Border":   {2, -2, 0.5, 0.25, 1e-8},
		"OnePoint": {2, 0, 0, 1, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := make([]float64, tc.n)
			for i := range x {
				x[i] = -1.2
			}
			lower, upper := box(tc.n, tc.lower, tc.upper)
			got := Minimize(rosenbrock, x, lower, upper, Config{Iterations: 500, Memory: 10, Tolerance: 1e-9})
			if math.Abs(got-tc.value) > tc.tolerance {
				t.Errorf("minimum %v at %v: want %v", got, x, tc.value)
			}
			for i := range x {
				if x[i] < lower[i] || x[i] > upper[i] {
					t.Errorf("x[%d] is %v: out of the box", i, x[i])
				}
			}
		})
	}
}

// TestNotFinite checks that it ends, with a value no worse than the first, on
// functions that are not finite everywhere.
func TestNotFinite(t *testing.T) {
	t.Parallel()
	logarithm := func(x, gradient []float64) float64 { // has no value below 0, its minimum is at 1
		gradient[0] = 1 - 1/x[0]
		return x[0] - math.Log(x[0])
	}
	x := []float64{5}
	if got := Minimize(logarithm, x, []float64{-10}, []float64{10}, Default()); math.Abs(got-1) > 1e-6 {
		t.Errorf("minimum %v at %v: want 1 at 1", got, x)
	}
	nothing := func(_, gradient []float64) float64 { gradient[0] = math.NaN(); return math.NaN() }
	if got := Minimize(nothing, []float64{0}, []float64{-1}, []float64{1}, Default()); !math.IsNaN(got) {
		t.Errorf("minimum of what is no number is %v", got)
	}
}
