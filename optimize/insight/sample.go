// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/optimize"
)

// Options specify what to explain.
type Options struct {
	// Objective is the index of the objective.
	Objective int
	// Target, if not nil, is explained instead: a number for each complete
	// trial, such as its cost. NaN omits the trial.
	Target func(optimize.Trial) float64
	// Seed is the random seed.
	Seed uint64
}

// ErrTooFew is wrapped by errors about a history with too few complete trials
// to learn from: there have to be two.
var ErrTooFew = errors.New("fewer than two complete trials")

// sample is the trials' data about the target.
type sample struct {
	space   *optimize.Space
	x       [][]float64 // in the unit cube, not a number where a parameter does not exist
	y       []float64   // finite
	minimal bool        // less is better
}

// gather returns the complete trials, and known results, with their targets.
// Infinite ones become the nearest finite one.
func gather(h *optimize.History, o Options) (sample, error) {
	s := sample{space: h.Space(), minimal: true}
	if o.Target == nil {
		if o.Objective < 0 || o.Objective >= len(h.Directions()) {
			return s, fmt.Errorf("objective is %d: want 0 to %d", o.Objective, len(h.Directions())-1)
		}
		s.minimal = h.Directions()[o.Objective] == optimize.Minimize
		o.Target = func(t optimize.Trial) float64 { return t.Values[o.Objective] }
	}
	add := func(t optimize.Trial) {
		if !t.Complete() {
			return
		}
		if v := o.Target(t); !math.IsNaN(v) {
			s.x, s.y = append(s.x, s.space.Unit(t.Point)), append(s.y, v)
		}
	}
	for _, t := range h.Known() {
		add(t)
	}
	for i := range h.Len() {
		add(h.Trial(i))
	}
	if len(s.y) < 2 {
		return s, ErrTooFew
	}
	clip(s.y)
	return s, nil
}

// standardise maps y to -1 … 1, and returns shift and unit of which y was
// shift + unit·y.
func (s sample) standardise() (shift, unit float64) {
	lo, hi := slices.Min(s.y), slices.Max(s.y)
	shift, unit = lo/2+hi/2, hi/2-lo/2 // which do not overflow
	if unit == 0 {
		unit = 1
	}
	for i, v := range s.y {
		s.y[i] = (v - shift) / unit
	}
	return shift, unit
}

// clip moves infinite numbers to the nearest finite one, or to 0.
func clip(y []float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range y {
		if !math.IsInf(v, 0) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	if lo > hi {
		lo, hi = 0, 0
	}
	for i, v := range y {
		y[i] = math.Min(math.Max(v, lo), hi)
	}
}

// categories returns for each parameter how many categories it has, 0 for one
// whose values have an order.
func categories(s *optimize.Space) []int {
	counts := make([]int, s.Len())
	for i := range counts {
		if p := s.Parameter(i); p.Kind == optimize.KindCategorical {
			counts[i] = len(p.List)
		}
	}
	return counts
}
