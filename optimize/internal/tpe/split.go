// SPDX-License-Identifier: Apache-2.0

package tpe

import (
	"cmp"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// weighted is a trial and how much it counts in a model.
type weighted struct {
	id     int
	weight float64
}

// Division is the trials of a search divided for two models.
type Division struct {
	evidence  *Evidence
	good, bad []weighted
}

// Split divides the trials into good ones, at most as many as count says of
// some number, and at most so many others.
func (e *Evidence) Split(count func(int) int, others int) Division {
	if e.stale {
		e.rankFronts()
	}
	n := count(len(e.ranked))
	ranked := e.ranked
	if e.objectives > 1 {
		ranked = e.selectFront(n)
	}
	d := Division{evidence: e, good: make([]weighted, n)}
	for i := range d.good {
		// The best count most: as in the weights of evolution strategies.
		d.good[i] = weighted{ranked[i].id, math.Log((float64(n) + 1) / float64(i+1))}
	}
	scaleWeights(d.good)
	d.bad = thin(len(ranked)-n+len(e.failed), others, func(k int) int {
		if k += n; k < len(ranked) {
			return ranked[k].id
		}
		return e.failed[k-len(ranked)]
	})
	for _, id := range e.pending {
		d.bad = append(d.bad, weighted{id, 1})
	}
	return d
}

// scaleWeights makes weights one on average.
func scaleWeights(trials []weighted) {
	sum := 0.0
	for _, t := range trials {
		sum += t.weight
	}
	for i := range trials {
		trials[i].weight *= float64(len(trials)) / sum
	}
}

// thin returns at most so many of n trials, the best first, given the ids of
// them: half of them the best, which are those near the good ones, and of the
// rest one in so many, which counts for those left out.
func thin(n, most int, id func(int) int) []weighted {
	all := n
	if n > most {
		all = most / 2
	}
	thinned := make([]weighted, 0, min(n, most))
	for k := range all {
		thinned = append(thinned, weighted{id(k), 1})
	}
	if n > all {
		stride := float64(n-all) / float64(most/2)
		for i := range most / 2 {
			thinned = append(thinned, weighted{id(all + int((float64(i)+0.5)*stride)), stride})
		}
	}
	return thinned
}

// selectFront returns the ranking with the front that the division into n good
// trials and others goes through ordered by hypervolume: first those that
// together have most of it.
func (e *Evidence) selectFront(n int) []rank {
	complete := e.complete()
	if n <= 0 || n >= complete {
		return e.ranked
	}
	byFirst := func(s rank, first float64) int { return cmp.Compare(s.first, first) }
	front := e.ranked[n].first
	from, _ := slices.BinarySearchFunc(e.ranked[:complete], front, byFirst)
	to, _ := slices.BinarySearchFunc(e.ranked[:complete], front+1, byFirst)
	if from == n {
		return e.ranked
	}
	losses := make([][]float64, 0, to-from)
	for _, s := range e.ranked[from:to] {
		losses = append(losses, e.example(s.id).losses)
	}
	ranked := slices.Clone(e.ranked)
	chosen := make([]bool, to-from)
	at := from
	for _, k := range pareto.Select(losses, pareto.Reference(losses), n-from) {
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
