// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"math"
	"slices"
)

// The model follows N. Hansen, "A global surrogate assisted CMA-ES", 2019
// (lq-CMA-ES): a polynomial of the evaluations of the descent, linear at first
// and quadratic as soon as there are enough of them. Where its order of the
// last evaluations agrees with theirs, it stands in for the evaluations of the
// generation that are left; and its optimum takes part in the generation.

// sample is an evaluated point, with by how much it violates constraints: 0 for
// not at all, +Inf for a failure.
type sample struct {
	x                []float64
	violation, value float64
}

func (s sample) failed() bool { return math.IsInf(s.violation, 1) }

const (
	agreement = 0.7 // Kendall's τ from which the model stands in
	judged    = 15  // the number of evaluations that it is judged by
	surplus   = 1.1 // evaluations for each coefficient, at least
	window    = 2   // and at most, the newest
	mostTerms = 128 // coefficients at most, which bounds the cost of a fit
	patience  = 32  // a fit follows when the archive has grown by one part in so many
)

// remember adds a sample to the archive, which keeps as many as a model needs.
func (s *Search) remember(p sample) {
	s.seen++
	s.archive = append(s.archive, p)
	if most := window*mostTerms + s.dist.Size(); len(s.archive) >= 2*most {
		s.archive = slices.Clone(s.archive[len(s.archive)-most:])
	}
}

// learn fits the model anew if there is enough news, and reports whether it
// orders the last evaluations as they are.
func (s *Search) learn() bool {
	if s.model != nil && (s.seen-s.fitted)*patience < s.seen {
		return false
	}
	lessons := s.lessons()
	n, form := len(s.dist.mean), linear
	for _, richer := range []terms{squares, products} {
		if c := richer.count(n); c <= mostTerms && float64(len(lessons)) >= surplus*float64(c) {
			form = richer
		}
	}
	count := form.count(n)
	if count > mostTerms || float64(len(lessons)) < surplus*float64(count) {
		return false
	}
	s.fitted = s.seen
	recent := lessons[max(0, len(lessons)-max(window*count, s.dist.Size(), judged)):]
	merit := newMerit(recent)
	values := make([]float64, len(recent))
	for i, p := range recent {
		values[i] = merit.of(p)
	}
	if s.model = fit(recent, values, form); s.model == nil {
		return false
	}
	s.model.merit = merit
	s.sort()
	first := max(0, len(recent)-judged)
	predicted := make([]float64, 0, judged)
	for _, p := range recent[first:] {
		predicted = append(predicted, s.model.predict(p.x))
	}
	return kendall(predicted, values[first:]) >= agreement
}

// lessons returns the samples that a model is fitted to: those that did not
// fail. Where more than a third of the last ones did, that says something of the
// place, and they are among them.
func (s *Search) lessons() []sample {
	failures := 0
	for _, p := range s.archive[max(0, len(s.archive)-judged):] {
		if p.failed() {
			failures++
		}
	}
	if 3*failures > judged || !slices.ContainsFunc(s.archive, sample.failed) {
		return s.archive
	}
	return slices.DeleteFunc(slices.Clone(s.archive), sample.failed)
}
