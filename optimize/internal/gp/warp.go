// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"
	"slices"
)

// Warp maps finite values to be minimised, which may have any size and spread,
// to outputs of mean 0 and variance 1, in the same order. Those that are far
// worse than most are all as bad, so that a few of them do not hide the
// differences of the others.
type Warp struct {
	least, unit     float64 // the least value, and how far the median is from it
	mean, deviation float64
}

// worst is how many times as far from the best as the median a value counts at
// most.
const worst = 20

// NewWarp returns the map for some values, at least one.
func NewWarp(values []float64) Warp {
	sorted := slices.Sorted(slices.Values(values))
	w := Warp{least: sorted[0], deviation: 1}
	for _, v := range sorted[len(sorted)/2:] {
		if w.unit = v/2 - w.least/2; w.unit > 0 { // halves do not overflow
			break
		}
	}
	if !(w.unit > 0) {
		w.unit = 1
	}
	n := float64(len(values))
	mean, squares := 0.0, 0.0
	for _, v := range values {
		mean += w.At(v) / n
	}
	for _, v := range values {
		squares += (w.At(v) - mean) * (w.At(v) - mean) / n
	}
	w.mean = mean
	if squares > 0 {
		w.deviation = math.Sqrt(squares)
	}
	return w
}

// At returns the output of a value.
func (w Warp) At(value float64) float64 {
	return (min((value/2-w.least/2)/w.unit, worst) - w.mean) / w.deviation
}

// Unwarp returns the value that has an output, and how much the value changes
// as the output does, where the output is not that of the worst values.
func (w Warp) Unwarp(output float64) (value, slope float64) {
	slope = 2 * w.deviation * w.unit
	return 2 * ((output*w.deviation+w.mean)*w.unit + w.least/2), slope
}
