// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"math"
	"strconv"
	"time"
)

// State is the state of a trial.
type State int

// The states of a trial.
const (
	Pending State = iota
	Running
	Succeeded
	Failed
	MetricsUnavailable
	EarlyStopped
	Killed
)

// String is the state in a sentence about a trial: "trial x succeeded".
func (s State) String() string {
	switch s {
	case Pending:
		return "waits"
	case Running:
		return "runs"
	case Succeeded:
		return "succeeded"
	case MetricsUnavailable:
		return "reported no metric"
	case EarlyStopped:
		return "was stopped early"
	case Killed:
		return "was killed"
	default:
		return "failed"
	}
}

// Ended reports whether a trial in this state will not change any more.
func (s State) Ended() bool { return s > Running }

// Counts are numbers of trials by state.
type Counts struct {
	Succeeded, Failed, MetricsUnavailable, EarlyStopped, Killed, Running, Pending int
}

// Ended is the number of trials that will not change any more.
func (c Counts) Ended() int {
	return c.Succeeded + c.Failed + c.MetricsUnavailable + c.EarlyStopped + c.Killed
}

// Total is the number of all trials.
func (c Counts) Total() int { return c.Ended() + c.Running + c.Pending }

// Parameter is one value that a trial tries, as text.
type Parameter struct{ Name, Value string }

// Trial is the state of one trial.
type Trial struct {
	// Name is the trial's name within its namespace.
	Name string
	// State is its state.
	State State
	// Parameters are its assignments, in the order of the search space.
	Parameters []Parameter
	// Value is the objective's value as reported, by the objective's strategy; "" without one.
	Value string
	// Violates is whether it violates a constraint of the objective: it is not the best then.
	Violates bool
	// Ended is when the trial ended, to the second; zero while it runs.
	Ended time.Time
	// Message says why the trial ended.
	Message string
	// Container is the one whose metrics count, and Replica what its Pod's name has after the trial's; each ""
	// where that is not said.
	Container, Replica string
}

// number is the trial's value as a finite number.
func (t *Trial) number() (float64, bool) {
	v, err := strconv.ParseFloat(t.Value, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// Condition is how a followed object ended; "" while it has not.
type Condition string

// The final conditions of work.
const (
	ConditionSucceeded Condition = "Succeeded"
	ConditionFailed    Condition = "Failed"
)

// Status is the status of a followed object.
type Status struct {
	// Condition, Reason and Message say how the object ended. Without a
	// condition, they say why it is waiting.
	Condition       Condition
	Reason, Message string
	// Started and Ended are to the second; zero when not yet.
	Started, Ended time.Time
	// Planned is how many of what it counts will end at most; 0 when unknown.
	Planned int
	// Parallel is how many of them run at the same time at most; 0 when unknown.
	Parallel int
	// Counts are the object's own numbers. Those of a search may lag behind its trials.
	Counts Counts
	// Uncounted is whether the object has trials of which it gives no numbers.
	Uncounted bool
	// Best is the best trial by the object's own word; nil without one.
	Best *Trial
}

// Objective is what an Experiment optimizes; it is zero for other kinds.
type Objective struct {
	// Metric is the name of the objective metric.
	Metric string
	// Maximize is whether greater is better.
	Maximize bool
}

// better reports whether a is a better trial than b. Values that are not numbers cannot be
// compared: the later one counts, as in Katib.
func (o Objective) better(a, b *Trial) bool {
	if b == nil {
		return a.Value != ""
	}
	x, isNumber := a.number()
	y, wasNumber := b.number()
	switch {
	case !isNumber || !wasNumber:
		return a.Value != "" && !wasNumber
	case o.Maximize:
		return x > y
	default:
		return x < y
	}
}
