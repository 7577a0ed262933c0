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

// split divides the trials into good and others. count says how many of some
// number of trials are good.
func (e *tpeEvidence) split(count func(int) int) tpeDivision {
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
	for _, s := range ranked[n:] {
		d.bad = append(d.bad, tpeWeighted{s.id, 1})
	}
	for _, id := range e.failed {
		d.bad = append(d.bad, tpeWeighted{id, 1})
	}
	d.bad = tpeThin(d.bad)
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

// tpeKept is how many trials a model of the others has at most. More of them
// would cost time and change little.
const tpeKept = 256

// tpeThin returns at most tpeKept of some trials, the best first: half of them the
// best, which are those near the good ones, and of the rest one in so many,
// which counts for those left out.
func tpeThin(trials []tpeWeighted) []tpeWeighted {
	if len(trials) <= tpeKept {
		return trials
	}
	rest := trials[tpeKept/2:]
	thinned := trials[: tpeKept/2 : tpeKept/2]
	stride := float64(len(rest)) / (tpeKept / 2)
	for i := range tpeKept / 2 {
		thinned = append(thinned, tpeWeighted{rest[int((float64(i)+0.5)*stride)].id, stride})
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
