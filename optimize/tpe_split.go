// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// tpeWeighted is a trial and how much it counts in a model.
type tpeWeighted struct {
	id     int
	weight float64
}

// tpeDivision is the trials divided for two models.
type tpeDivision struct {
	evidence  *tpeEvidence
	good, bad []tpeWeighted
}

// split divides the trials into good ones, at most as many as count says of
// some number, and at most so many others.
func (e *tpeEvidence) split(count func(int) int, others int) tpeDivision {
	n := count(len(e.ranked))
	ranked := e.ranked
	if len(e.h.directions) > 1 {
		ranked = e.selectFront(n)
	}
	d := tpeDivision{evidence: e, good: make([]tpeWeighted, n)}
	for i := range d.good {
		// The best count most: as in the weights of evolution strategies.
		d.good[i] = tpeWeighted{ranked[i].id, math.Log((float64(n) + 1) / float64(i+1))}
	}
	scaleWeights(d.good)
	d.bad = tpeThin(len(ranked)-n+len(e.failed), others, func(k int) int {
		if k += n; k < len(ranked) {
			return ranked[k].id
		}
		return e.failed[k-len(ranked)]
	})
	for _, id := range e.pending {
		d.bad = append(d.bad, tpeWeighted{id, 1})
	}
	return d
}

// scaleWeights makes weights one on average.
func scaleWeights(trials []tpeWeighted) {
	sum := 0.0
	for _, t := range trials {
		sum += t.weight
	}
	for i := range trials {
		trials[i].weight *= float64(len(trials)) / sum
	}
}

// tpeThin returns at most so many of n trials, the best first, given the ids of
// them: half of them the best, which are those near the good ones, and of the
// rest one in so many, which counts for those left out.
func tpeThin(n, most int, id func(int) int) []tpeWeighted {
	all := n
	if n > most {
		all = most / 2
	}
	thinned := make([]tpeWeighted, 0, min(n, most))
	for k := range all {
		thinned = append(thinned, tpeWeighted{id(k), 1})
	}
	if n > all {
		stride := float64(n-all) / float64(most/2)
		for i := range most / 2 {
			thinned = append(thinned, tpeWeighted{id(all + int((float64(i)+0.5)*stride)), stride})
		}
	}
	return thinned
}

// selectFront returns the ranking with the front that the division into n good
// trials and others goes through ordered by hypervolume: first those that
// together have most of it.
func (e *tpeEvidence) selectFront(n int) []tpeRank {
	complete := e.complete()
	if n <= 0 || n >= complete {
		return e.ranked
	}
	rank := e.ranked[n].first
	from, _ := slices.BinarySearchFunc(e.ranked[:complete], rank, func(s tpeRank, rank float64) int { return cmp.Compare(s.first, rank) })
	to, _ := slices.BinarySearchFunc(e.ranked[:complete], rank+1, func(s tpeRank, rank float64) int { return cmp.Compare(s.first, rank) })
	if from == n {
		return e.ranked
	}
	front := make([][]float64, 0, to-from)
	for _, s := range e.ranked[from:to] {
		front = append(front, e.losses(s.id))
	}
	ranked := slices.Clone(e.ranked)
	chosen := make([]bool, to-from)
	at := from
	for _, k := range pareto.Select(front, pareto.Reference(front), n-from) {
		ranked[at], chosen[k] = e.ranked[from+k], true
		at++
	}
	for k, s := range e.ranked[from:to] {
		if !chosen[k] {
			ranked[at] = s
			at++
		}
	}
	return ranked
}
