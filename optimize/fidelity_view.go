// SPDX-License-Identifier: Apache-2.0

package optimize

import "slices"

// view returns the history of the configurations, and how many of them have
// values there; see [FidelityConfig].
func (f *fidelity) view(b *fidelityBoard) (v *History, values int) {
	model := f.modelRung(b)
	known := make([]Result, b.configurations.Len())
	for i, run := range b.runs {
		r := &known[run.configuration]
		switch t := &b.history.trials[i]; {
		case t.State == Failed || t.State == Infeasible:
			if !r.Complete() {
				*r = t.Result
			}
		case t.Complete() && run.level >= model && !r.Complete():
			*r = t.Result
			values++
		}
	}
	copied := *b.configurations
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
	for _, t := range b.history.known {
		if f.level(b.history.space, t.Point) == model {
			v.known = append(v.known, Trial{Index: -1, Point: f.drop(t.Point), Result: t.Result})
			values++
		}
	}
	return v, values
}

// modelRungs is how many of the highest rungs there may be a model of. What is
// good with less of the resource often is not in the end, where curves cross;
// a model of it would keep the search from all that learns slowly.
const modelRungs = 3

// modelRung returns the rung to learn from.
func (f *fidelity) modelRung(b *fidelityBoard) int {
	values := make([]int, len(f.ladder))
	for _, i := range b.history.told {
		if b.history.trials[i].Complete() {
			values[b.runs[i].level]++
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
