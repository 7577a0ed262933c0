// SPDX-License-Identifier: Apache-2.0

// Package objective reads from a trial how good it is.
//
// A trial's observation holds the minimum, the maximum and the latest value of
// each metric. The metric strategy of the objective metric selects which of them
// is the trial's [Score]. If no value is a number, the latest counts, which may
// be text, such as a network architecture: text has no order, and an experiment
// considers the newest the best. NaN and infinite values are not scores.
//
// A trial that violates a constraint of the objective is worse than any that
// does not, and of two that do, the one that violates less is better. Further
// objectives have no part in the score: see [Front].
package objective

import (
	"math"
	"strconv"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Score is how good a trial is. The zero Score is none.
type Score struct {
	Kind Kind
	// Value is the score of kind Number.
	Value float64
	// Violation is the sum of how much the trial's metrics exceed the
	// objective's constraints; infinite if one is unknown.
	Violation float64
}

// Kind is the kind of a score. A greater kind is better.
type Kind int

// The kinds of scores.
const (
	None Kind = iota
	Text
	Number
)

// Of returns a trial's score.
func Of(t *v1beta1.Trial) Score {
	o := t.Spec.Objective
	if o == nil {
		return Score{}
	}
	score := read(t, o.ObjectiveMetricName, o.Type)
	if score.Kind == None {
		return score
	}
	for _, v := range Violations(t) {
		score.Violation += max(v, 0)
	}
	return score
}

// Values returns a trial's value of each objective, the first one's first; ok is
// false where one of them is not a finite number.
func Values(t *v1beta1.Trial) (values []float64, ok bool) {
	o := t.Spec.Objective
	if o == nil {
		return nil, false
	}
	metrics := append([]v1beta1.AdditionalObjective{{MetricName: o.ObjectiveMetricName, Type: o.Type}}, o.AdditionalObjectives...)
	for _, m := range metrics {
		score := read(t, m.MetricName, m.Type)
		if score.Kind != Number {
			return nil, false
		}
		values = append(values, score.Value)
	}
	return values, true
}

// Violations returns for each bound that a constraint sets by how much a
// trial's metric is outside of it: not above 0 when it is not, infinite when the
// metric is not known.
func Violations(t *v1beta1.Trial) (violations []float64) {
	if t.Spec.Objective == nil {
		return nil
	}
	for _, c := range t.Spec.Objective.Constraints {
		score := read(t, c.MetricName, "")
		by := func(v float64) float64 {
			if score.Kind != Number || math.IsNaN(v) {
				return math.Inf(1)
			}
			return v
		}
		if c.Min != nil {
			violations = append(violations, by(*c.Min-score.Value))
		}
		if c.Max != nil {
			violations = append(violations, by(score.Value-*c.Max))
		}
	}
	return violations
}

// read returns the score that a metric alone would give, without constraints. t
// says how a value is chosen where the objective has no strategy for the metric.
func read(t *v1beta1.Trial, name string, kind v1beta1.ObjectiveType) Score {
	metric := t.Status.Observation.Get(name)
	if metric == nil {
		return Score{}
	}
	text := metric.Value(t.Spec.Objective.Strategy(name, kind))
	if text == v1beta1.UnavailableMetricValue || text == "" {
		return Score{}
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(value, 0): // out of range is infinite
		return Score{Kind: Text}
	case math.IsNaN(value) || math.IsInf(value, 0): // a run that diverged, or a division by zero
		return Score{}
	}
	return Score{Kind: Number, Value: value}
}

// Better reports whether a beats b. Of two texts neither does.
func (a Score) Better(b Score, goal v1beta1.ObjectiveType) bool {
	switch {
	case a.Kind != b.Kind:
		return a.Kind > b.Kind
	case a.Violation != b.Violation:
		return a.Violation < b.Violation
	case goal == v1beta1.ObjectiveTypeMaximize:
		return a.Value > b.Value
	}
	return a.Value < b.Value
}

// Reaches reports whether the score is as good as an objective's goal, and
// violates none of its constraints.
func (a Score) Reaches(o *v1beta1.ObjectiveSpec) bool {
	if o.Goal == nil || a.Kind != Number || a.Violation > 0 {
		return false
	}
	if o.Type == v1beta1.ObjectiveTypeMaximize {
		return a.Value >= *o.Goal
	}
	return a.Value <= *o.Goal
}
