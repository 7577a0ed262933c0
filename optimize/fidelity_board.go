// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"slices"
	"strconv"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// fidelityBoard is a history as seen by bracket and rung. It grows with the
// history, so that only what is new has to be read.
type fidelityBoard struct {
	history        *History
	runs           []fidelityRun    // by index of the suggestion
	told           int              // how many of the history's results are on the board
	brackets       [][]fidelityRung // by bracket and rung
	closed         []bool           // by bracket: there is nothing more to do
	configurations *History         // those of the runs, by index in the order in which they began, without results
}

// fidelityRun is where a suggestion is on the board.
type fidelityRun struct {
	bracket, rung int  // -1 where it is on none, as a user's own
	level         int  // the rung that it stands for: its own, or the highest whose amount it has
	child         bool // it is a configuration of an earlier suggestion
	promoted      bool // a later one is of its configuration
	configuration int  // the index of its configuration
}

// fidelityRung is what is on a rung of a bracket.
type fidelityRung struct {
	started  int
	finished []fidelityScore // the best first
}

// fidelityScore is a number of a suggestion by which those on a rung are
// sorted: first by tier.
type fidelityScore struct {
	index  int
	tier   int
	values [2]float64
}

// read returns the board of a history.
func (f *fidelity) read(h *History) *fidelityBoard {
	if f.board == nil || f.board.history != h {
		f.board = &fidelityBoard{history: h, configurations: NewHistory(f.configurations, h.directions...)}
	}
	b := f.board
	for i := len(b.runs); i < h.Len(); i++ {
		b.runs = append(b.runs, fidelityRun{bracket: -1, rung: -1, level: -1})
		f.place(b, i)
	}
	for ; b.told < len(h.told); b.told++ {
		i := h.told[b.told]
		if run := &b.runs[i]; run.rung >= 0 {
			rung := &b.brackets[run.bracket][run.rung]
			score := scoreOf(h, i)
			at, _ := slices.BinarySearchFunc(rung.finished, score, fidelityScore.compare)
			rung.finished = slices.Insert(rung.finished, at, score)
		}
	}
	return b
}

// place finds the place of a suggestion from its labels. One whose labels do
// not fit, as with other settings, has none.
func (f *fidelity) place(b *fidelityBoard, i int) {
	trial, run := &b.history.trials[i], &b.runs[i]
	if trial.State == Lost {
		run.configuration = b.configurations.AddLost()
		return
	}
	bracket, rung := label(trial.Point, LabelBracket), label(trial.Point, LabelRung)
	run.level = f.level(b.history.space, trial.Point)
	// A bracket begins when those before it have trials.
	fits := bracket >= 0 && bracket <= i && rung >= 0 && rung < len(f.ladder) && trial.Point.at[f.axis] == f.ladder[rung]
	if _, child := trial.Point.labels[LabelParent]; child && fits {
		parent := label(trial.Point, LabelParent)
		fits = parent >= 0 && parent < i && b.runs[parent].bracket == bracket && b.runs[parent].rung == rung-1 && !b.runs[parent].promoted
		if fits {
			b.runs[parent].promoted = true
			run.child, run.configuration = true, b.runs[parent].configuration
		}
	}
	if !run.child {
		run.configuration = b.configurations.Add(f.drop(trial.Point))
	}
	if !fits {
		return
	}
	run.bracket, run.rung = bracket, rung
	for len(b.brackets) <= bracket {
		b.brackets, b.closed = append(b.brackets, make([]fidelityRung, len(f.ladder))), append(b.closed, false)
	}
	b.brackets[bracket][rung].started++
}

// label returns a label that is a number, -1 where it is not.
func label(p Point, name string) int {
	n, err := strconv.Atoi(p.labels[name])
	if err != nil {
		return -1
	}
	return n
}

// level returns the highest rung whose amount of the resource a point has, or
// the lowest.
func (f *fidelity) level(space *Space, p Point) int {
	resource, level := &space.axes[f.axis], 0
	amount := resource.amount(p.at[f.axis])
	for rung, at := range f.ladder {
		if resource.amount(at) <= amount {
			level = rung
		}
	}
	return level
}

// at returns what is on a rung of a bracket.
func (b *fidelityBoard) at(bracket, rung int) fidelityRung {
	if bracket >= len(b.brackets) {
		return fidelityRung{}
	}
	return b.brackets[bracket][rung]
}

// finished returns the suggestions on a rung that have ended, the best first:
// those that violate no constraint by value, those that do by violation, then
// those that were stopped early and those that failed. Of equals the earlier is
// first. Several objectives are compared by fronts, and by crowding within one.
func (b *fidelityBoard) finished(bracket, rung int) []int {
	scores := b.at(bracket, rung).finished
	if len(b.history.directions) > 1 {
		scores = rankFronts(b.history, scores)
	}
	indices := make([]int, len(scores))
	for k, s := range scores {
		indices[k] = s.index
	}
	return indices
}

func (s fidelityScore) compare(o fidelityScore) int {
	return cmp.Or(cmp.Compare(s.tier, o.tier), slices.Compare(s.values[:], o.values[:]), cmp.Compare(s.index, o.index))
}

func scoreOf(h *History, i int) fidelityScore {
	trial := &h.trials[i]
	switch {
	case trial.Complete() && trial.Feasible():
		return fidelityScore{i, 0, [2]float64{h.Direction().loss(trial.Value())}}
	case trial.Complete():
		return fidelityScore{i, 1, [2]float64{trial.Violation()}}
	case trial.State == Stopped:
		return fidelityScore{i, 2, [2]float64{}}
	}
	return fidelityScore{i, 3, [2]float64{}}
}

// rankFronts sorts the first tier of some scores by all objectives.
func rankFronts(h *History, scores []fidelityScore) []fidelityScore {
	scores = slices.Clone(scores)
	var losses [][]float64
	for _, s := range scores {
		if s.tier == 0 {
			losses = append(losses, h.losses(h.trials[s.index]))
		}
	}
	fronts := pareto.Fronts(losses)
	members := map[int][]int{}
	for k, front := range fronts {
		members[front] = append(members[front], k)
	}
	for front := range len(members) {
		var rows [][]float64
		for _, k := range members[front] {
			rows = append(rows, losses[k])
		}
		for k, distance := range pareto.Crowding(rows) {
			scores[members[front][k]].values = [2]float64{float64(front), -distance}
		}
	}
	slices.SortFunc(scores, fidelityScore.compare)
	return scores
}
