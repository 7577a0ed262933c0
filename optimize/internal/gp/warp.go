// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"
	"slices"
)

// Warp maps values to be minimised, which may have any size and spread, to
// outputs of mean 0 and variance 1, in the same order.
type Warp struct {
	least, unit     float64 // the least value, and how far the median is from it
	bend            float64 // of the logarithm, 0 for none
	mean, deviation float64
}

// worst is how many times as far from the best as the median a value counts at
// most.
const worst = 20

// NewWarp returns the map for some finite values. bend is how strongly it spreads
// the best of them: the distance t from the best, in units of that of the median,
// becomes log(1 + bend·t), or remains t where bend is 0.
func NewWarp(values []float64, bend float64) Warp {
	sorted := slices.Sorted(slices.Values(values))
	w := Warp{least: sorted[0], bend: bend, deviation: 1}
	for _, v := range sorted[len(sorted)/2:] {
		if w.unit = v - w.least; w.unit > 0 {
			break
		}
	}
	if !(w.unit > 0) {
		w.unit = 1
	}
	if math.IsInf(w.unit, 1) {
		w.unit = math.MaxFloat64
	}
	sum, squares := 0.0, 0.0
	n := float64(len(values))
	for _, v := range values {
		sum += w.At(v)
	}
	mean := sum / n
	for _, v := range values {
		squares += (w.At(v) - mean) * (w.At(v) - mean)
	}
	w.mean = mean
	if deviation := math.Sqrt(squares / n); deviation > 0 {
		w.deviation = deviation
	}
	return w
}

// At returns the output of a value.
func (w Warp) At(value float64) float64 {
	t := min(value/w.unit-w.least/w.unit, worst)
	if w.bend > 0 {
		t = math.Log1p(w.bend * t)
	}
	return (t - w.mean) / w.deviation
}
