// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"
	"slices"
)

// Warp maps finite values to be minimized, which may have any size and spread,
// to outputs of mean 0 and variance 1, in the same order. Those that are far
// worse than most are all as bad, so that a few of them do not hide the
// differences of the others.
//
// With t the distance from the least value, in units of that of the median, an
// output is proportional to log(1 + bend·t), or to t where bend is 0. A bend
// suits values of many magnitudes, or with noise in proportion to them.
type Warp struct {
	bend            float64
	least, unit     float64 // the least value, and half of how far the median is from it
	mean, deviation float64
}

// worst is the greatest t.
const worst = 20

// NewWarp returns the map for some values, at least one, with a bend from 0.
func NewWarp(values []float64, bend float64) Warp {
	sorted := slices.Sorted(slices.Values(values))
	w := Warp{bend: bend, least: sorted[0], deviation: 1}
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

func (w Warp) distance(value float64) float64 {
	return min((value/2-w.least/2)/w.unit, worst)
}

// At returns the output of a value. One below the least counts as that where
// there is a bend.
func (w Warp) At(value float64) float64 {
	t := w.distance(value)
	if w.bend > 0 {
		t = math.Log1p(w.bend * max(t, 0))
	}
	return (t - w.mean) / w.deviation
}

// LogSlope returns the logarithm of how much an output changes with t, which
// turns the density of an output into that of t.
func (w Warp) LogSlope(value float64) float64 {
	if w.bend == 0 {
		return -math.Log(w.deviation)
	}
	return math.Log(w.bend) - math.Log1p(w.bend*max(w.distance(value), 0)) - math.Log(w.deviation)
}
