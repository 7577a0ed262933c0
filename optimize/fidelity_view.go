// SPDX-License-Identifier: Apache-2.0

package optimize

import "slices"

// view returns the history of the configurations; see [FidelityConfig].
func (f *fidelity) view(b *fidelityBoard) *History {
	model := f.modelRung(b)
	known := make([]fidelityKnown, b.configurations.Len())
	for i := range known {
		known[i].level = -1
	}
	for i, run := range b.runs {
		known[run.configuration].learn(&b.history.trials[i].Result, run.level, model)
	}
	v := *b.configurations
	v.trials = slices.Clone(v.trials)
	for i := range known {
		r := known[i].result(model)
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
		}
	}
	return &v
}

// modelRung returns the rung to learn from.
func (f *fidelity) modelRung(b *fidelityBoard) int {
	values := make([]int, len(f.ladder))
	for _, i := range b.history.told {
		if b.history.trials[i].Complete() {
			values[b.runs[i].level]++
		}
	}
	for rung := len(values) - 1; rung > 0; rung-- {
		if values[rung] >= f.MinPoints {
			return rung
		}
	}
	return 0
}

// fidelityKnown is what is known of a configuration.
type fidelityKnown struct {
	values Result // on the level
	level  int    // the lowest from the model's rung on, or below it the highest; -1 for none
	ended  State  // Failed or Infeasible where the last trial is
}

// learn takes in what came of a trial of the configuration, each after those
// with less of the resource.
func (k *fidelityKnown) learn(r *Result, level, model int) {
	switch {
	case r.State == Failed || r.State == Infeasible:
		k.ended = r.State
	case (r.Complete() || r.State == Stopped && len(r.Values) > 0) && k.level < model && level > k.level:
		k.values, k.level = *r, level
	}
}

func (k *fidelityKnown) result(model int) Result {
	switch {
	case k.level >= model && k.values.Complete():
		return k.values
	case k.ended != Pending:
		return Result{State: k.ended}
	case k.level < 0:
		return Result{}
	}
	r := k.values
	r.Step = k.level + 1
	if r.State == Stopped { // which did not get so far
		r.Step = k.level
	}
	r.State = Stopped
	return r
}
