// SPDX-License-Identifier: Apache-2.0

package optimize

// view returns the history of the configurations; see [FidelityConfig].
func (f *fidelity) view(b *fidelityBoard) *History {
	level := f.levels(b)
	model := f.modelRung(b, level)
	v := NewHistory(f.configurations, b.history.directions...)
	place := make([]int, len(b.runs)) // by trial: the index of its configuration
	known := make([]fidelityKnown, 0, len(b.runs))
	for i := range b.runs {
		run := &b.runs[i]
		switch {
		case run.State == Lost:
			place[i] = v.AddLost()
		case run.parent >= 0:
			place[i] = place[run.parent]
		default:
			place[i] = v.Add(f.drop(run.Point))
		}
		if place[i] == len(known) {
			known = append(known, fidelityKnown{level: -1})
		}
		known[place[i]].learn(run, level[i], model)
	}
	for i := range known {
		if r := known[i].result(model); r.State != Pending && v.trials[i].State != Lost {
			// The values come from a history, which has checked them.
			v.trials[i].Result = r
			v.told = append(v.told, i)
			if t := v.trials[i]; t.Complete() && t.Feasible() && v.beats(t) {
				v.best = i
			}
		}
	}
	for _, t := range b.history.known {
		if t.Complete() && t.Point.at[f.axis] == f.ladder[model] {
			v.known = append(v.known, Trial{Index: -1, Point: f.drop(t.Point), Result: t.Result})
		}
	}
	return v
}

// levels returns the rung that each trial stands for: its own, or for one that
// is on none, the highest whose amount it has, or the lowest.
func (f *fidelity) levels(b *fidelityBoard) []int {
	levels := make([]int, len(b.runs))
	resource := &b.history.space.axes[f.axis]
	for i := range b.runs {
		run := &b.runs[i]
		if levels[i] = run.rung; run.rung >= 0 || run.State == Lost {
			continue
		}
		amount := resource.amount(run.Point.at[f.axis])
		levels[i] = 0
		for rung, at := range f.ladder {
			if resource.amount(at) <= amount {
				levels[i] = rung
			}
		}
	}
	return levels
}

// modelRung returns the rung to learn from.
func (f *fidelity) modelRung(b *fidelityBoard, level []int) int {
	values := make([]int, len(f.ladder))
	for i := range b.runs {
		if b.runs[i].Complete() && level[i] >= 0 {
			values[level[i]]++
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

func (k *fidelityKnown) learn(run *fidelityRun, level, model int) {
	switch {
	case run.State == Failed || run.State == Infeasible:
		k.ended = run.State
	case (run.Complete() || run.State == Stopped && len(run.Values) > 0) && k.level < model && level > k.level:
		k.values, k.level = run.Result, level
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
