// SPDX-License-Identifier: Apache-2.0

package cma

import "math"

// merit puts results on one line, for a model: values from lo to hi, the finite
// ones of some samples, from 0 to 1; violations of constraints, worse than any
// value, from there to 2.
type merit struct {
	lo, hi   float64
	greatest float64 // finite violation, 0 for none
}

func newMerit(samples []sample) merit {
	s := merit{lo: math.Inf(1), hi: math.Inf(-1)}
	for _, p := range samples {
		switch {
		case p.violation == 0 && !math.IsInf(p.value, 0):
			s.lo, s.hi = math.Min(s.lo, p.value), math.Max(s.hi, p.value)
		case p.violation > 0 && !p.failed():
			s.greatest = math.Max(s.greatest, p.violation)
		}
	}
	if s.lo > s.hi {
		s.lo, s.hi = 0, 0
	}
	return s
}

// of returns where a sample is. An infinite value is as bad, or good, as the
// worst, or best, that is finite; a failure is as bad as the worst sample.
func (s merit) of(p sample) float64 {
	switch {
	case p.failed() && s.greatest > 0:
		return 2
	case p.failed():
		return 1
	case p.violation > 0:
		return 1 + p.violation/s.greatest
	case s.lo == s.hi:
		return 0
	}
	v := math.Min(math.Max(p.value, s.lo), s.hi)
	return (v/2 - s.lo/2) / (s.hi/2 - s.lo/2) // halves do not overflow
}

// at returns violation and value at a place of the line.
func (s merit) at(place float64) (violation, value float64) {
	if place > 1 && s.greatest > 0 {
		return (place - 1) * s.greatest, s.hi
	}
	return 0, s.lo*(1-place) + s.hi*place
}
