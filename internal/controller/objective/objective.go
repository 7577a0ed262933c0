// SPDX-License-Identifier: Apache-2.0

// Package objective reads from a trial how good it is.
//
// A trial's observation holds the minimum, the maximum and the latest value of
// each metric. The metric strategy of the objective metric says which of them
// is the trial's [Score]. Where no value is a number, the latest counts, which
// may be text, such as a network architecture: text has no order, and an
// experiment takes the newest for the best. "NaN" is no score.
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
}

// Kind says what a score is. One of a greater kind is better.
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
	metric := t.Status.Observation.Get(o.ObjectiveMetricName)
	if metric == nil {
		return Score{}
	}
	text := extract(metric, strategy(o))
	if text == v1beta1.UnavailableMetricValue || text == "" {
		return Score{}
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(value, 0): // out of range is infinite
		return Score{Kind: Text}
	case math.IsNaN(value):
		return Score{}
	}
	return Score{Kind: Number, Value: value}
}

// strategy is that of the objective metric; without one, that which defaulting
// would choose.
func strategy(o *v1beta1.ObjectiveSpec) v1beta1.MetricStrategyType {
	for _, s := range o.MetricStrategies {
		if s.Name == o.ObjectiveMetricName {
			return s.Value
		}
	}
	if o.Type == v1beta1.ObjectiveTypeMaximize {
		return v1beta1.ExtractByMax
	}
	return v1beta1.ExtractByMin
}

func extract(m *v1beta1.Metric, strategy v1beta1.MetricStrategyType) string {
	text := m.Latest
	switch strategy {
	case v1beta1.ExtractByMin:
		text = m.Min
	case v1beta1.ExtractByMax:
		text = m.Max
	}
	if text == v1beta1.UnavailableMetricValue {
		return m.Latest
	}
	return text
}

// Better reports whether a beats b. Of two texts neither does.
func (a Score) Better(b Score, goal v1beta1.ObjectiveType) bool {
	switch {
	case a.Kind != b.Kind:
		return a.Kind > b.Kind
	case goal == v1beta1.ObjectiveTypeMaximize:
		return a.Value > b.Value
	}
	return a.Value < b.Value
}

// Reaches reports whether the score is as good as an objective's goal.
func (a Score) Reaches(o *v1beta1.ObjectiveSpec) bool {
	if o.Goal == nil || a.Kind != Number {
		return false
	}
	if o.Type == v1beta1.ObjectiveTypeMaximize {
		return a.Value >= *o.Goal
	}
	return a.Value <= *o.Goal
}
