// SPDX-License-Identifier: Apache-2.0

package tpe

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// Result is how a trial ended.
type Result struct {
	// Failed is set where there is nothing to rank it by.
	Failed bool
	// Violation of constraints, 0 for none.
	Violation float64
	// Stopped is set where the trial was stopped early, at a step.
	Stopped bool
	Step    int
	// Losses are its objectives', less is better; a trial that was stopped may
	// have none.
	Losses []float64
}

// Evidence is where the trials of a search are, and which are better. It does not
// depend on the order in which results are told.
type Evidence struct {
	objectives int
	known      []example // results from elsewhere
	trials     []example // by index; the zero one where nothing is known of it
	ranked     []rank    // those with a value or a violation, the best first
	stale      bool      // the ranks of fronts are not up to date
	failed     []int     // those without, in order
	pending    []int     // in order
}

// example is a point, and its losses once they are known.
type example struct {
	point, losses []float64
}

// rank is what a trial is ranked by.
type rank struct {
	id    int     // index, or ^k of known result k
	class int     // complete, stopped, violating
	first float64 // within the class: less is better
	then  float64
}

// NewEvidence returns that of a search of some number of objectives that has not
// begun.
func NewEvidence(objectives int) *Evidence { return &Evidence{objectives: objectives} }

// Len returns how many trials and known results there are.
func (e *Evidence) Len() (trials, known int) { return len(e.trials), len(e.known) }

// Add adds the next trial, which is pending; nil is one of which nothing is known.
func (e *Evidence) Add(point []float64) {
	if point != nil {
		e.pending = append(e.pending, len(e.trials))
	}
	e.trials = append(e.trials, example{point: point})
}

// AddKnown adds a result from elsewhere.
func (e *Evidence) AddKnown(point []float64, r Result) {
	e.known = append(e.known, example{point: point})
	e.judge(^(len(e.known) - 1), r)
}

// Tell adds the result of a pending trial.
func (e *Evidence) Tell(index int, r Result) {
	if at, ok := slices.BinarySearch(e.pending, index); ok {
		e.pending = slices.Delete(e.pending, at, at+1)
	}
	e.judge(index, r)
}

// example returns a trial or known result.
func (e *Evidence) example(id int) *example {
	if id < 0 {
		return &e.known[^id]
	}
	return &e.trials[id]
}

// judge puts a result in its place among the others.
func (e *Evidence) judge(id int, r Result) {
	loss := math.NaN()
	if len(r.Losses) > 0 {
		loss = r.Losses[0]
	}
	s := rank{id: id}
	switch {
	case r.Failed:
		at, _ := slices.BinarySearch(e.failed, id)
		e.failed = slices.Insert(e.failed, at, id)
		return
	case r.Violation > 0:
		s.class, s.first = 2, r.Violation
	case r.Stopped:
		s.class, s.first, s.then = 1, -float64(r.Step), loss
		if math.IsNaN(loss) {
			s.then = math.Inf(1)
		}
	default:
		s.first = loss
	}
	e.example(id).losses = r.Losses
	at, _ := slices.BinarySearchFunc(e.ranked, s, rank.compare)
	e.ranked = slices.Insert(e.ranked, at, s)
	e.stale = e.objectives > 1
}

func (s rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(s.class, o.class), cmp.Compare(s.first, o.first), cmp.Compare(s.then, o.then), cmp.Compare(s.id, o.id))
}

// rankFronts ranks the complete trials of a search of several objectives by
// the Pareto front that they are in.
func (e *Evidence) rankFronts() {
	n := e.complete()
	losses := make([][]float64, n)
	slices.SortFunc(e.ranked[:n], func(a, b rank) int { return cmp.Compare(a.id, b.id) })
	for i, s := range e.ranked[:n] {
		losses[i] = e.example(s.id).losses
	}
	for i, front := range pareto.Fronts(losses) {
		e.ranked[i].first = float64(front)
	}
	slices.SortFunc(e.ranked[:n], rank.compare)
	e.stale = false
}

// complete returns how many of the ranked trials are complete and feasible.
func (e *Evidence) complete() int {
	n, _ := slices.BinarySearchFunc(e.ranked, 1, func(s rank, class int) int { return cmp.Compare(s.class, class) })
	return n
}
