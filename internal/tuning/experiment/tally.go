// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/objective"
)

// tally is a summary of all trials of an experiment.
type tally struct {
	counts [states]int
	ending int            // active trials that are being deleted
	awaits int            // early stopped trials whose run may not have ended
	best   *v1beta1.Trial // the best that ended with a score, or nil
	goal   bool           // one reached the goal
}

// tally counts the trials of the group.
func (g *group) tally(o *v1beta1.ObjectiveSpec) tally {
	var t tally
	best := -1
	for i := range g.rows {
		row := &g.rows[i]
		t.counts[row.state]++
		if row.ending && row.state.active() {
			t.ending++
		}
		if row.stopping && row.state == earlyStopped {
			t.awaits++
		}
		if row.score.Kind == objective.None {
			continue
		}
		t.goal = t.goal || row.score.Reaches(o)
		if best < 0 || g.beats(i, best, o.Type) {
			best = i
		}
	}
	if best >= 0 {
		t.best = g.rows[best].trial
	}
	return t
}

// beats reports whether row i is better than row j. Of equal numbers the older
// trial is better, of texts the newer.
func (g *group) beats(i, j int, goal v1beta1.ObjectiveType) bool {
	a, b := &g.rows[i], &g.rows[j]
	if a.score == b.score {
		return (newestFirst(a, b) < 0) == (a.score.Kind == objective.Text)
	}
	return a.score.Better(b.score, goal)
}

// total is the number of trials.
func (t *tally) total() int {
	n := 0
	for _, count := range t.counts {
		n += count
	}
	return n
}

// active is the number of trials that run or wait to, without those that are
// being deleted.
func (t *tally) active() int { return t.counts[pending] + t.counts[running] - t.ending }

// completed is the number of trials that ended.
func (t *tally) completed() int { return t.total() - t.counts[pending] - t.counts[running] }

// failures is what maxFailedTrialCount bounds.
func (t *tally) failures() int { return t.counts[failed] + t.counts[metricsUnavailable] }

// barren reports whether trials ended, and none with a result.
func (t *tally) barren() bool {
	return t.completed() > 0 && t.counts[succeeded]+t.counts[earlyStopped] == 0
}
