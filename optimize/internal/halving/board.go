// SPDX-License-Identifier: Apache-2.0

package halving

import (
	"cmp"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// Board is the runs of a search by bracket and rung.
type Board struct {
	rungs    int
	runs     []Run       // by index
	brackets [][]entries // by bracket and rung
	closed   []bool      // by bracket: there is nothing more to do
}

// Run is a configuration on a rung.
type Run struct {
	// Bracket and Rung count from 0. They are -1 for a run that is on none.
	Bracket, Rung int
	// Promoted is set where a later run is of the same configuration, on the next
	// rung.
	Promoted bool
}

// entries are the runs on a rung of a bracket.
type entries struct {
	started  int
	finished []score // the best first
}

// Outcome is how a run ended.
type Outcome struct {
	Class Class
	// Losses are those of a feasible one, by objective.
	Losses []float64
	// Violation is that of a violating one.
	Violation float64
}

// Class is a kind of outcomes, which are all better than those of the next.
type Class int

// The classes.
const (
	Feasible Class = iota
	Violating
	Stopped // early
	Failed
)

// score is the sort key of a run on a rung: first by class.
type score struct {
	index  int
	class  Class
	values [2]float64
	losses []float64
}

func (s score) compare(o score) int {
	return cmp.Or(cmp.Compare(s.class, o.class), slices.Compare(s.values[:], o.values[:]), cmp.Compare(s.index, o.index))
}

// NewBoard returns an empty board, whose brackets have some number of rungs.
func NewBoard(rungs int) *Board { return &Board{rungs: rungs} }

// Run returns the run with an index.
func (b *Board) Run(index int) Run { return b.runs[index] }

// Add adds the next run: a new configuration, where parent is -1, or that of a run
// on the rung below. Where there is no such place, as with other settings, the run
// is on none, and ok is false.
func (b *Board) Add(bracket, rung, parent int) (ok bool) {
	// A bracket begins when those before it have runs.
	ok = bracket >= 0 && bracket <= len(b.runs) && rung >= 0 && rung < b.rungs
	if ok && parent >= 0 {
		ok = parent < len(b.runs) && b.runs[parent] == Run{Bracket: bracket, Rung: rung - 1}
	}
	if !ok {
		b.AddElsewhere()
		return false
	}
	if parent >= 0 {
		b.runs[parent].Promoted = true
	}
	b.runs = append(b.runs, Run{Bracket: bracket, Rung: rung})
	for len(b.brackets) <= bracket {
		b.brackets, b.closed = append(b.brackets, make([]entries, b.rungs)), append(b.closed, false)
	}
	b.brackets[bracket][rung].started++
	return true
}

// AddElsewhere adds a run that is on no rung.
func (b *Board) AddElsewhere() { b.runs = append(b.runs, Run{Bracket: -1, Rung: -1}) }

// End adds the outcome of a run.
func (b *Board) End(index int, o Outcome) {
	run := b.runs[index]
	if run.Rung < 0 {
		return
	}
	s := score{index: index, class: o.Class}
	switch o.Class {
	case Feasible:
		s.values[0], s.losses = o.Losses[0], o.Losses
	case Violating:
		s.values[0] = o.Violation
	}
	on := &b.brackets[run.Bracket][run.Rung]
	at, _ := slices.BinarySearchFunc(on.finished, s, score.compare)
	on.finished = slices.Insert(on.finished, at, s)
}

// Started returns how many runs a rung of a bracket has.
func (b *Board) Started(bracket, rung int) int {
	if bracket >= len(b.brackets) {
		return 0
	}
	return b.brackets[bracket][rung].started
}

// Finished returns the runs on a rung that have ended, the best first: feasible ones
// by loss, violating ones by violation, then those that were stopped early and
// those that failed. Of equals the earlier is first. Several objectives are
// compared by fronts, and by crowding within one.
func (b *Board) Finished(bracket, rung int) []int {
	if bracket >= len(b.brackets) {
		return nil
	}
	scores := b.brackets[bracket][rung].finished
	if len(scores) > 0 && len(scores[0].losses) > 1 {
		scores = rankFronts(scores)
	}
	indices := make([]int, len(scores))
	for k, s := range scores {
		indices[k] = s.index
	}
	return indices
}

// rankFronts sorts the feasible ones of some scores by all objectives.
func rankFronts(scores []score) []score {
	scores = slices.Clone(scores)
	var losses [][]float64
	for _, s := range scores {
		if s.class == Feasible {
			losses = append(losses, s.losses)
		}
	}
	fronts, crowding := pareto.Standing(losses, make([]float64, len(losses)))
	for k := range losses { // which are the first
		scores[k].values = [2]float64{float64(fronts[k]), -crowding[k]}
	}
	slices.SortFunc(scores, score.compare)
	return scores
}
