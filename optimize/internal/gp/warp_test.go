// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLogSlope compares with numeric differentiation.
func TestLogSlope(t *testing.T) {
	t.Parallel()
	for _, bend := range []float64{0, 1, 10} {
		w := NewWarp([]float64{3, 5, 4, 9, 3.5}, bend)
		for _, v := range []float64{3.1, 4.25, 9} {
			const h = 1e-6
			numeric := (w.At(v+h) - w.At(v-h)) / (2 * h) // the median is 1 from the least
			if got, want := w.LogSlope(v), math.Log(numeric); math.Abs(got-want) > 1e-6 {
				t.Errorf("logarithm of the slope at %v is %v: want %v", v, got, want)
			}
		}
	}
}

// TestWarp checks what holds of every map: outputs are finite, in the order of
// the values, and have mean 0 and variance 1 unless all are the same.
func TestWarp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(-10, 10), rapid.Float64(), rapid.SampledFrom([]float64{1e308, -1e308, 0, 5e-324}))
		values := rapid.SliceOfN(number, 1, 30).Draw(rt, "values")
		w := NewWarp(values, rapid.SampledFrom([]float64{0, 1, 10}).Draw(rt, "bend"))
		outputs := make([]float64, len(values))
		mean, squares := 0.0, 0.0
		for i, v := range values {
			outputs[i] = w.At(v)
			if math.IsNaN(outputs[i]) || math.IsInf(outputs[i], 0) {
				rt.Fatalf("output of %v is %v", v, outputs[i])
			}
			mean += outputs[i] / float64(len(values))
			squares += outputs[i] * outputs[i] / float64(len(values))
		}
		if math.Abs(mean) > 1e-9 || squares > 1e-9 && math.Abs(squares-1) > 1e-9 {
			rt.Errorf("mean %v, mean square %v: want 0 and 1", mean, squares)
		}
		order := make([]int, len(values))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			if values[a] < values[b] {
				return -1
			}
			return 1
		})
		for i := range order[1:] {
			if outputs[order[i]] > outputs[order[i+1]] {
				rt.Errorf("%v and %v change their order", values[order[i]], values[order[i+1]])
			}
		}
	})
}
