// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"time"
)

// ID names a followed object.
type ID struct{ Kind, Namespace, Name string }

// Searches reports whether the object has trials: those of an OptimizationJob are those of the
// Experiment of its name.
func (id ID) Searches() bool { return id.Kind == "Experiment" || id.Kind == "OptimizationJob" }

// Work is the model of one followed object.
type Work struct {
	id        ID
	objective Objective
	since     time.Time
	whole     bool

	status Status
	done   time.Time
	trials map[string]Trial
	counts Counts
	ended  []string // names of ended trials in the order of their end
	best   string
	pace   pace
}

// NewWork returns the model of an object that is followed from now on. whole is whether it was
// created then, so that the time since is the time that it took.
func NewWork(id ID, objective Objective, whole bool, now time.Time) *Work {
	return &Work{
		id: id, objective: objective, since: now, whole: whole,
		trials: map[string]Trial{}, pace: pace{times: []time.Time{now}},
	}
}

// ID names the object.
func (w *Work) ID() ID { return w.id }

// Done reports whether the object has ended.
func (w *Work) Done() bool { return w.status.Condition != "" }

// Settled reports whether the object has ended and every trial that it counts is known to have. An
// OptimizationJob counts none: as many as it planned are waited for.
func (w *Work) Settled() bool {
	ended := w.status.Counts.Ended()
	if w.id.Kind == "OptimizationJob" {
		ended = w.status.Planned
	}
	return w.Done() && (!w.id.Searches() || w.counts.Ended() >= ended)
}

// Condition is how the object ended; "" while it has not.
func (w *Work) Condition() Condition { return w.status.Condition }

// Event is something that happened and that a user wants to know.
type Event struct {
	ID ID
	// Trial is the trial that ended; nil when the event is the end of the object itself.
	Trial *Trial
	// Metric names the trial's value.
	Metric string
	// Best is whether the trial is the best so far.
	Best bool
	// Condition, Reason and Message are those of the object at its end.
	Condition       Condition
	Reason, Message string
}

// SetStatus takes in what the object says of itself at the time now.
func (w *Work) SetStatus(status Status, now time.Time) []Event {
	was := w.status.Condition
	w.status = status
	if status.Condition == was {
		return nil
	}
	w.done = now
	if status.Condition == "" {
		return nil
	}
	return []Event{{ID: w.id, Condition: status.Condition, Reason: status.Reason, Message: status.Message}}
}

// SetTrial takes in a trial at the time now. Trials that are set while initial is true were there
// before: they count, but are no news.
func (w *Work) SetTrial(trial Trial, initial bool, now time.Time) []Event {
	was, known := w.trials[trial.Name]
	if known && was.State.Ended() {
		return nil
	}
	if known {
		*w.counts.of(was.State)--
	}
	*w.counts.of(trial.State)++
	w.trials[trial.Name] = trial
	if !trial.State.Ended() {
		return nil
	}
	w.insert(trial)
	best := w.raise(trial)
	if initial {
		return nil
	}
	w.pace.add(now, w.status.Parallel)
	return []Event{{ID: w.id, Trial: &trial, Metric: w.objective.Metric, Best: best}}
}

// RemoveTrial takes in that a trial was deleted.
func (w *Work) RemoveTrial(name string) {
	trial, known := w.trials[name]
	if !known {
		return
	}
	*w.counts.of(trial.State)--
	delete(w.trials, name)
	w.ended = slices.DeleteFunc(w.ended, func(other string) bool { return other == name })
	if w.best == name {
		w.best = ""
		for _, other := range w.ended {
			w.raise(w.trials[other])
		}
	}
}

// insert puts an ended trial in its place in the order of ends: last, unless the news of an
// earlier end came late.
func (w *Work) insert(trial Trial) {
	at := len(w.ended)
	for at > 0 && w.trials[w.ended[at-1]].Ended.After(trial.Ended) {
		at--
	}
	w.ended = slices.Insert(w.ended, at, trial.Name)
}

// raise makes an ended trial the best if it is.
func (w *Work) raise(trial Trial) bool {
	var best *Trial
	if known, ok := w.trials[w.best]; ok {
		best = &known
	}
	if trial.State != Succeeded && trial.State != EarlyStopped || trial.Violates || !w.objective.better(&trial, best) {
		return false
	}
	w.best = trial.Name
	return true
}

// of is the counter of a state.
func (c *Counts) of(state State) *int {
	switch state {
	case Pending:
		return &c.Pending
	case Running:
		return &c.Running
	case Succeeded:
		return &c.Succeeded
	case MetricsUnavailable:
		return &c.MetricsUnavailable
	case EarlyStopped:
		return &c.EarlyStopped
	case Killed:
		return &c.Killed
	default:
		return &c.Failed
	}
}
