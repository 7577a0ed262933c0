// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestUnwarp(t *testing.T) {
	t.Parallel()
	w := NewWarp([]float64{3, 5, 4, 9, 3.5})
	for _, v := range []float64{3, 4.25, 9, -7} {
		if got, slope := w.Unwarp(w.At(v)); math.Abs(got-v) > 1e-12 || math.Abs(slope*(w.At(v+1)-w.At(v))-1) > 1e-12 {
			t.Errorf("%v comes back as %v with slope %v", v, got, slope)
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
		w := NewWarp(values)
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
