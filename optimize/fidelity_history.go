// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"slices"
	"strconv"

	"diwan.dev/diwan/optimize/internal/halving"
)

// fidelityHistory is a history as the samplers over a resource see it. It grows
// with the history, so that only new entries have to be read.
type fidelityHistory struct {
	*History
	board          *halving.Board
	runs           []fidelityRun // by index of the suggestion
	ended          int           // how many of the history's results are on the board
	configurations *History      // those of the runs, by index in the order in which they began, without results
}

// fidelityRun is what a suggestion is a run of.
type fidelityRun struct {
	level         int // the rung that it stands for: its own, or the highest whose amount it has
	configuration int // the index of its configuration
}

// read returns a history as of now.
func (f *fidelity) read(h *History) *fidelityHistory {
	if f.past == nil || f.past.History != h {
		f.past = &fidelityHistory{
			History: h, board: halving.NewBoard(len(f.ladder)), configurations: NewHistory(f.configurations, h.directions...),
		}
	}
	past := f.past
	for i := len(past.runs); i < h.Len(); i++ {
		past.runs = append(past.runs, f.place(past, h.trials[i]))
	}
	for ; past.ended < len(h.told); past.ended++ {
		i := h.told[past.ended]
		past.board.End(i, h.outcome(i))
	}
	return past
}

// place finds the place of a suggestion from its labels. One whose labels do
// not fit, as with other settings, has none.
func (f *fidelity) place(past *fidelityHistory, t Trial) fidelityRun {
	if t.State == Lost {
		past.board.AddElsewhere()
		return fidelityRun{level: -1, configuration: past.configurations.AddLost()}
	}
	run := fidelityRun{level: f.level(past.space, t.Point)}
	bracket, rung, parent := label(t.Point, LabelBracket), label(t.Point, LabelRung), label(t.Point, LabelParent)
	_, child := t.Point.labels[LabelParent]
	fits := rung >= 0 && rung < len(f.ladder) && t.Point.at[f.axis] == f.ladder[rung] && child == (parent >= 0)
	if !fits {
		past.board.AddElsewhere()
	} else if past.board.Add(bracket, rung, parent) && child {
		run.configuration = past.runs[parent].configuration
		return run
	}
	run.configuration = past.configurations.Add(f.drop(t.Point))
	return run
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

// outcome returns how a suggestion ended.
func (h *History) outcome(i int) halving.Outcome {
	switch t := h.trials[i]; {
	case t.Complete() && t.Feasible():
		return halving.Outcome{Class: halving.Feasible, Losses: h.losses(t)}
	case t.Complete():
		return halving.Outcome{Class: halving.Violating, Violation: t.Violation()}
	case t.State == Stopped:
		return halving.Outcome{Class: halving.Stopped}
	}
	return halving.Outcome{Class: halving.Failed}
}

// view returns the history of the configurations, and how many of them have
// values there; see [FidelityConfig].
func (f *fidelity) view(past *fidelityHistory) (v *History, values int) {
	model := f.modelRung(past)
	known := make([]Result, past.configurations.Len())
	for i, run := range past.runs {
		r := &known[run.configuration]
		switch t := &past.trials[i]; {
		case t.State == Failed || t.State == Infeasible:
			if !r.Complete() {
				*r = t.Result
			}
		case t.Complete() && run.level >= model && !r.Complete():
			*r = t.Result
			values++
		}
	}
	copied := *past.configurations
	v = &copied
	v.trials = slices.Clone(v.trials)
	for i, r := range known {
		if r.State == Pending || v.trials[i].State == Lost {
			continue
		}
		// The values come from a history, which has checked them.
		v.trials[i].Result = r
		v.told = append(v.told, i)
		if t := v.trials[i]; t.Complete() && t.Feasible() && v.beats(t) {
			v.best = i
		}
	}
	for _, t := range past.known {
		if f.level(past.space, t.Point) == model {
			v.known = append(v.known, Trial{Index: -1, Point: f.drop(t.Point), Result: t.Result})
			values++
		}
	}
	return v, values
}

// modelRungs is how many of the highest rungs may have a model. What is good
// with less of the resource often is not in the end, if curves cross; a model
// of it would keep the search from slow learners.
const modelRungs = 3

// modelRung returns the rung to learn from.
func (f *fidelity) modelRung(past *fidelityHistory) int {
	values := make([]int, len(f.ladder))
	for _, i := range past.told {
		if past.trials[i].Complete() {
			values[past.runs[i].level]++
		}
	}
	lowest := max(len(values)-modelRungs, 0)
	for rung := len(values) - 1; rung > lowest; rung-- {
		if values[rung] >= f.MinPoints {
			return rung
		}
	}
	return lowest
}
