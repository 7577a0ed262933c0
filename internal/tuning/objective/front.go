// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"cmp"
	"slices"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Front returns the Pareto-optimal trials: those that violate no constraint
// and that no other dominates by being as good in all objectives and better in
// one. For equal values the first by name is used. They are sorted by the
// first objective, the best first.
func Front(o *v1beta1.ObjectiveSpec, trials []*v1beta1.Trial) []*v1beta1.Trial {
	type member struct {
		trial  *v1beta1.Trial
		losses []float64
	}
	var front []member
	for _, t := range trials {
		losses, ok := losses(o, t)
		if !ok || Of(t).Violation > 0 {
			continue
		}
		beats := func(m member) bool {
			return noWorse(m.losses, losses) && !(slices.Equal(m.losses, losses) && t.Name < m.trial.Name)
		}
		if slices.ContainsFunc(front, beats) {
			continue
		}
		front = slices.DeleteFunc(front, func(m member) bool { return noWorse(losses, m.losses) })
		front = append(front, member{t, losses})
	}
	slices.SortFunc(front, func(a, b member) int {
		return cmp.Or(slices.Compare(a.losses, b.losses), cmp.Compare(a.trial.Name, b.trial.Name))
	})
	best := make([]*v1beta1.Trial, len(front))
	for i, m := range front {
		best[i] = m.trial
	}
	return best
}

// losses returns a trial's values, turned so that less is better.
func losses(o *v1beta1.ObjectiveSpec, t *v1beta1.Trial) ([]float64, bool) {
	values, ok := Values(t)
	if !ok || len(values) != 1+len(o.AdditionalObjectives) {
		return nil, false
	}
	if o.Type == v1beta1.ObjectiveTypeMaximize {
		values[0] = -values[0]
	}
	for i, a := range o.AdditionalObjectives {
		if a.Type == v1beta1.ObjectiveTypeMaximize {
			values[i+1] = -values[i+1]
		}
	}
	return values, true
}

// noWorse reports whether a is as good as b everywhere.
func noWorse(a, b []float64) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}
