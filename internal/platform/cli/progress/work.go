// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"strings"
	"time"
)

// ID names a followed object.
type ID struct{ Kind, Namespace, Name string }

// Unit is what an object counts.
type Unit string

// What objects count.
const (
	Itself Unit = "" // a Pod
	Pods   Unit = "pod"
	Jobs   Unit = "job"
	Trials Unit = "trial" // that of a search, which has an objective
)

// Work is the model of one followed object.
type Work struct {
	id        ID
	unit      Unit
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

	pods     map[string]Pod
	failures map[string]string // how what has this name, of what the object counts, failed last
	failure  string            // how any Pod failed last
	troubles map[string]string // why what has this name has no Pods yet
}

// NewWork returns the model of an object that is followed from now on, and of what it counts. whole
// is whether it was created then, so that the time since is the time that it took.
func NewWork(id ID, unit Unit, objective Objective, whole bool, now time.Time) *Work {
	return &Work{
		id: id, unit: unit, objective: objective, since: now, whole: whole,
		trials: map[string]Trial{}, pace: pace{times: []time.Time{now}},
		pods: map[string]Pod{}, failures: map[string]string{}, troubles: map[string]string{},
	}
}

// ID names the object.
func (w *Work) ID() ID { return w.id }

// Done reports whether the object has ended.
func (w *Work) Done() bool { return w.status.Condition != "" }

// searches reports whether the object has trials.
func (w *Work) searches() bool { return w.unit == Trials }

// Settled reports whether the object has ended and every trial that it counts is known to have. Of one
// that counts none, as many as it planned are waited for.
func (w *Work) Settled() bool {
	ended := w.status.Counts.Ended()
	if w.status.Uncounted {
		ended = w.status.Planned
	}
	return w.Done() && (!w.searches() || w.counts.Ended() >= ended)
}

// Condition is how the object ended; "" while it has not.
func (w *Work) Condition() Condition { return w.status.Condition }

// Event is something that happened and that a user wants to know.
type Event struct {
	ID ID
	// Unit is what the object counts.
	Unit Unit
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

// SetStatus records the object's status at the time now.
func (w *Work) SetStatus(status Status, now time.Time) []Event {
	was := w.status.Condition
	if status.Condition == ConditionFailed && !w.searches() {
		status.Message = join(status.Message, w.failure)
	}
	w.status = status
	if status.Condition == was {
		return nil
	}
	w.done = now
	if status.Condition == "" {
		return nil
	}
	return []Event{{ID: w.id, Unit: w.unit, Condition: status.Condition, Reason: status.Reason, Message: status.Message}}
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
	if trial.State == Failed {
		trial.Message = join(trial.Message, w.failures[trial.Name])
	}
	w.insert(trial)
	best := w.raise(trial)
	if initial {
		return nil
	}
	w.pace.add(now, w.status.Parallel)
	return []Event{{ID: w.id, Unit: w.unit, Trial: &trial, Metric: w.objective.Metric, Best: best}}
}

// RemoveTrial takes in that a trial was deleted. Of an object that has ended it is kept: trials that
// are cleaned away with it are its result all the same.
func (w *Work) RemoveTrial(name string) {
	trial, known := w.trials[name]
	if !known || w.Done() {
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

// join adds to a message what it does not say yet.
func join(message, more string) string {
	switch {
	case more == "" || strings.Contains(message, more):
		return message
	case message == "":
		return more
	}
	return strings.TrimSuffix(message, ".") + "; " + more
}
