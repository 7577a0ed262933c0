// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// tpeEvidence is what a history tells a model of good and other trials: where its
// trials are in the unit cube, and which are better. It follows the history as
// that grows, and comes to the same whether it does so step by step or at once.
type tpeEvidence struct {
	h       *History
	told    int         // how many of h.Told it has seen
	known   [][]float64 // coordinates of known results
	units   [][]float64 // coordinates of trials by index, nil of lost ones
	ranked  []tpeRank   // those with a value or a violation, the best first
	failed  []int       // those without, in order
	pending []int       // in order
}

// tpeRank is what a trial is ranked by.
type tpeRank struct {
	id    int     // index, or ^k of known result k
	class int     // complete, stopped, violating
	first float64 // within the class: less is better
	then  float64
}

func newTPEEvidence(h *History) *tpeEvidence { return &tpeEvidence{h: h} }

// of reports whether the evidence follows a history.
func (e *tpeEvidence) of(h *History) bool { return e.h == h }

// unit returns the coordinates of a trial or known result.
func (e *tpeEvidence) unit(id int) []float64 {
	if id < 0 {
		return e.known[^id]
	}
	return e.units[id]
}

// update takes in what is new in the history.
func (e *tpeEvidence) update() {
	before := len(e.ranked)
	for k := len(e.known); k < len(e.h.known); k++ {
		e.known = append(e.known, e.h.space.Unit(e.h.known[k].Point))
		e.judge(^k, e.h.known[k].Result)
	}
	for i := len(e.units); i < len(e.h.trials); i++ {
		t := &e.h.trials[i]
		if t.State == Lost {
			e.units = append(e.units, nil)
			continue
		}
		e.units = append(e.units, e.h.space.Unit(t.Point))
		e.pending = append(e.pending, i)
	}
	for ; e.told < len(e.h.told); e.told++ {
		i := e.h.told[e.told]
		if at, ok := slices.BinarySearch(e.pending, i); ok {
			e.pending = slices.Delete(e.pending, at, at+1)
		}
		e.judge(i, e.h.trials[i].Result)
	}
	if len(e.h.directions) > 1 && len(e.ranked) > before {
		e.rankFronts()
	}
}

// judge puts a result in its place among the others.
func (e *tpeEvidence) judge(id int, r Result) {
	s := tpeRank{id: id}
	switch loss := e.h.Direction().loss(r.Value()); {
	case r.State == Failed || r.State == Infeasible:
		at, _ := slices.BinarySearch(e.failed, id)
		e.failed = slices.Insert(e.failed, at, id)
		return
	case !r.Feasible():
		s.class, s.first = 2, r.Violation()
	case r.State == Stopped:
		s.class, s.first, s.then = 1, -float64(r.Step), loss
		if math.IsNaN(loss) {
			s.then = math.Inf(1)
		}
	default:
		s.first = loss
	}
	at, _ := slices.BinarySearchFunc(e.ranked, s, tpeRank.compare)
	e.ranked = slices.Insert(e.ranked, at, s)
}

func (s tpeRank) compare(o tpeRank) int {
	return cmp.Or(cmp.Compare(s.class, o.class), cmp.Compare(s.first, o.first), cmp.Compare(s.then, o.then), cmp.Compare(s.id, o.id))
}

// rankFronts ranks the complete trials of a search of several objectives by
// the Pareto front that they are in.
func (e *tpeEvidence) rankFronts() {
	n := e.complete()
	losses := make([][]float64, n)
	slices.SortFunc(e.ranked[:n], func(a, b tpeRank) int { return cmp.Compare(a.id, b.id) })
	for i, s := range e.ranked[:n] {
		losses[i] = e.losses(s.id)
	}
	for i, rank := range pareto.Fronts(losses) {
		e.ranked[i].first = float64(rank)
	}
	slices.SortFunc(e.ranked[:n], tpeRank.compare)
}

// complete returns how many of the ranked trials are complete and feasible.
func (e *tpeEvidence) complete() int {
	n, _ := slices.BinarySearchFunc(e.ranked, 1, func(s tpeRank, class int) int { return cmp.Compare(s.class, class) })
	return n
}

func (e *tpeEvidence) losses(id int) []float64 {
	if id < 0 {
		return e.h.losses(e.h.known[^id])
	}
	return e.h.losses(e.h.trials[id])
}
