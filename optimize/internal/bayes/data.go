// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
)

// Data is what is known of a search.
type Data struct {
	// Objectives is how many values a success has, from 1.
	Objectives int
	// Observations are in an order that stays as more of them come.
	Observations []Observation
	// Pending are points that are being evaluated.
	Pending [][]float64
}

// Observation is what came of a point.
type Observation struct {
	// Point has a coordinate from 0 to 1 for each dimension, NaN where it has
	// no value.
	Point []float64
	// Losses are the values of the objectives, to be minimized; none for a
	// failure. They may be infinite.
	Losses []float64
	// Violations are values of constraints, at most 0 where they hold; none
	// where they are not known.
	Violations []float64
}

// Feasible reports whether a success violates no constraint that is known.
func (o *Observation) feasible() bool {
	return len(o.Losses) > 0 && !slices.ContainsFunc(o.Violations, func(v float64) bool { return v > 0 })
}

// constraints returns how many values of constraints observations have.
func (d *Data) constraints() int {
	n := 0
	for i := range d.Observations {
		n = max(n, len(d.Observations[i].Violations))
	}
	return n
}

// outcome is one outcome of the observations that have it, as outputs that a
// Gaussian process can model.
type outcome struct {
	rows    []int // into the observations
	outputs []float64
	losses  []float64 // of an objective: those that the outputs stand for
	warp    gp.Warp   // and how they do
}

// warped returns the outcome of all observations with some losses.
func warped(losses []float64, bend float64) outcome {
	o := outcome{losses: losses, warp: gp.NewWarp(losses, bend)}
	for i, v := range losses {
		o.rows, o.outputs = append(o.rows, i), append(o.outputs, o.warp.At(v))
	}
	return o
}

// objective returns the losses of an objective. Those of failures are as bad as
// the worst of the successes.
func (d *Data) objective(k int, bend float64) outcome {
	var successes []float64
	for i := range d.Observations {
		if l := d.Observations[i].Losses; len(l) > 0 {
			successes = append(successes, l[k])
		}
	}
	if len(successes) == 0 {
		successes = []float64{0}
	}
	tame(successes)
	worst, n := slices.Max(successes), 0
	losses := make([]float64, len(d.Observations))
	for i := range d.Observations {
		losses[i] = worst
		if len(d.Observations[i].Losses) > 0 {
			losses[i], n = successes[n], n+1
		}
	}
	return warped(losses, bend)
}

// tame brings infinite values near the finite ones, on their side.
func tame(values []float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsInf(v, 0) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if lo > hi {
		lo, hi = 0, 0
	}
	margin := hi/2 - lo/2 // halves do not overflow
	if margin == 0 {
		margin = 1
	}
	for i, v := range values {
		switch {
		case math.IsInf(v, 1):
			v = hi + margin
		case math.IsInf(v, -1):
			v = lo - margin
		}
		values[i] = min(max(v, -math.MaxFloat64), math.MaxFloat64)
	}
}

// constraint returns the outputs of a constraint, which have the signs of its
// values: their size is compressed, because the border matters most.
func (d *Data) constraint(k int) outcome {
	var o outcome
	var sizes []float64
	for i := range d.Observations {
		if v := d.Observations[i].Violations; k < len(v) {
			o.rows = append(o.rows, i)
			o.outputs = append(o.outputs, v[k])
			sizes = append(sizes, math.Abs(v[k]))
		}
	}
	if len(sizes) == 0 {
		return o
	}
	slices.Sort(sizes)
	unit := sizes[len(sizes)/2]
	if !(unit > 0) || math.IsInf(unit, 1) {
		unit = 1
	}
	for i, v := range o.outputs {
		o.outputs[i] = math.Asinh(min(max(v/unit, -100), 100))
	}
	return o
}
