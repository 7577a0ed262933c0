// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// Direction is the direction of an objective.
type Direction int

// The directions.
const (
	Minimize Direction = iota
	Maximize
)

// Better reports whether objective a is better than b.
func (d Direction) Better(a, b float64) bool {
	if d == Maximize {
		return a > b
	}
	return a < b
}

// loss returns a value of an objective turned so that less is better.
func (d Direction) loss(value float64) float64 {
	if d == Maximize {
		return -value
	}
	return value
}

// State is the state of a suggestion.
type State int

// The states of a suggestion.
const (
	// Pending is a suggestion without a result yet.
	Pending State = iota
	// Complete is one with a value of each objective.
	Complete
	// Failed is one that ended without values, or with one that is not finite.
	// The same point might succeed another time.
	Failed
	// Infeasible is one that cannot be evaluated, and would not be another
	// time.
	Infeasible
	// Stopped is one that was stopped early; its values are the last seen.
	Stopped
	// Lost is a suggestion of which nothing is known except that it existed.
	Lost
)

// Result is the result of a suggestion.
type Result struct {
	State State
	// Values are the objectives', one for each, where State is Complete, and
	// where it is Stopped if there were any.
	Values []float64
	// Violations are of constraints on a trial's outcome, such as latency −
	// 10 ms: one that is greater than 0 makes the trial infeasible, and the
	// greater the worse. They may be omitted if unknown.
	Violations []float64
	// Step is when a trial was stopped, in the unit of its reports.
	Step int
}

// Values returns the result of a complete trial.
func Values(values ...float64) Result { return Result{State: Complete, Values: values} }

// Value returns the first objective's value, or not a number where there is
// none.
func (r Result) Value() float64 {
	if len(r.Values) == 0 {
		return math.NaN()
	}
	return r.Values[0]
}

// Complete reports whether the state is Complete.
func (r Result) Complete() bool { return r.State == Complete }

// Violation returns the sum of what constraints are violated by, 0 where all
// are satisfied.
func (r Result) Violation() float64 {
	return pareto.Violation(r.Violations)
}

// Feasible reports whether no outcome constraint is violated.
func (r Result) Feasible() bool { return r.State != Infeasible && r.Violation() == 0 }

func (r Result) equal(o Result) bool {
	return r.State == o.State && r.Step == o.Step && slices.Equal(r.Values, o.Values) && slices.Equal(r.Violations, o.Violations)
}

// checked returns the result as a history records it, of a search with some
// number of objectives.
func (r Result) checked(objectives int) (Result, error) {
	notFinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	switch r.State {
	case Complete:
		if len(r.Values) != objectives {
			return r, fmt.Errorf("it has %d values: want one for each of %d objectives", len(r.Values), objectives)
		}
		if slices.ContainsFunc(r.Values, notFinite) {
			return Result{State: Failed}, nil
		}
	case Stopped:
		if len(r.Values) != objectives || slices.ContainsFunc(r.Values, notFinite) {
			r.Values = nil
		}
	case Failed, Infeasible:
		r = Result{State: r.State}
	default:
		return r, fmt.Errorf("want one that is complete, stopped, failed or infeasible")
	}
	r.Values, r.Violations = slices.Clone(r.Values), slices.Clone(r.Violations)
	for i, v := range r.Violations {
		if math.IsNaN(v) {
			r.Violations[i] = math.Inf(1) // a constraint that could not be measured is not satisfied
		}
	}
	return r, nil
}
