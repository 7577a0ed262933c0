// SPDX-License-Identifier: Apache-2.0

package progress

import "time"

// View is a snapshot of a [Work]: all that is worth showing.
type View struct {
	ID        ID
	Unit      Unit
	Objective Objective
	Status    Status
	// Counts are the freshest numbers: of the trials and Pods seen, or of the object where it knows of more
	// that have ended.
	Counts Counts
	// Waits says for what something waits that nothing of runs; "" if nothing does, or it does not say.
	Waits string
	// Best is the best trial; nil without one.
	Best *Trial
	// History is the best value after each ended trial that has one, in the order of their ends.
	History []float64
	// Elapsed is how long the work has been followed or, once it ended, how long it took.
	Elapsed time.Duration
	// Remaining is an estimate of the time left; negative when it cannot be told.
	Remaining time.Duration
}

// View returns the snapshot at the time now.
func (w *Work) View(now time.Time) View {
	v := View{
		ID: w.id, Unit: w.unit, Objective: w.objective, Status: w.status, Counts: w.counts,
		Best: w.status.Best, History: w.history(), Elapsed: w.elapsed(now), Remaining: -1,
	}
	if len(w.trials) == 0 || w.Done() && w.status.Counts.Ended() > w.counts.Ended() {
		v.Counts = w.status.Counts
	}
	if !w.Done() {
		v.Counts, v.Waits = w.present(v.Counts)
	}
	if best, ok := w.trials[w.best]; ok && (!w.Done() || v.Best == nil) {
		v.Best = &best
	}
	if left := w.status.Planned - v.Counts.Ended(); left > 0 && !w.Done() {
		if remaining, ok := w.pace.remaining(left, w.status.Parallel, now); ok {
			v.Remaining = remaining
		}
	}
	return v
}

// elapsed is the time followed, or the time that the object itself tells where it began before.
func (w *Work) elapsed(now time.Time) time.Duration {
	if !w.Done() {
		return now.Sub(w.since)
	}
	if told := w.status.Ended.Sub(w.status.Started); !w.whole && !w.status.Started.IsZero() && told >= 0 {
		return told
	}
	return w.done.Sub(w.since)
}

// history is the best value so far after each ended trial.
func (w *Work) history() []float64 {
	var history []float64
	for _, name := range w.ended {
		trial := w.trials[name]
		value, ok := trial.number()
		ok = ok && !trial.Violates
		if !ok || trial.State != Succeeded && trial.State != EarlyStopped {
			continue
		}
		if n := len(history); n > 0 {
			if w.objective.Maximize {
				value = max(value, history[n-1])
			} else {
				value = min(value, history[n-1])
			}
		}
		history = append(history, value)
	}
	return history
}
