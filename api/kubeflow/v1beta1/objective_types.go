// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "slices"

// ObjectiveSpec says which metric to optimise, and how far.
// +kubebuilder:pruning:PreserveUnknownFields
type ObjectiveSpec struct {
	// Whether less or more is better: minimize or maximize.
	Type ObjectiveType `json:"type,omitempty"`

	// The value of the objective at which the experiment has succeeded. Without
	// a goal it goes on until maxTrialCount trials have ended.
	Goal *float64 `json:"goal,omitempty"`

	// The name of the metric to optimise, as the program reports it.
	ObjectiveMetricName string `json:"objectiveMetricName,omitempty"`

	// Names of further metrics to collect. They do not steer the search.
	AdditionalMetricNames []string `json:"additionalMetricNames,omitempty"`

	// How one value is made of all that a trial reports for a metric. Metrics
	// that are not listed take min when minimizing and max when maximizing; those
	// of constraints take latest.
	MetricStrategies []MetricStrategy `json:"metricStrategies,omitempty"`

	// Further metrics to optimise at the same time. There is no one best trial
	// then: status.optimalTrials has those that none is better than in all
	// objectives. Not a field of Katib's.
	AdditionalObjectives []AdditionalObjective `json:"additionalObjectives,omitempty"`

	// What must hold of a trial's metrics for it to count as good. Not a field of
	// Katib's.
	Constraints []MetricConstraint `json:"constraints,omitempty"`
}

// AdditionalObjective is a further metric to optimise.
type AdditionalObjective struct {
	// Whether less or more is better: minimize or maximize.
	Type ObjectiveType `json:"type"`

	// The name of the metric, as the program reports it.
	MetricName string `json:"metricName"`
}

// MetricConstraint bounds a metric.
type MetricConstraint struct {
	// The name of the metric, as the program reports it.
	MetricName string `json:"metricName"`

	// The least value that is allowed.
	Min *float64 `json:"min,omitempty"`

	// The greatest value that is allowed.
	Max *float64 `json:"max,omitempty"`
}

// MetricNames returns the metrics that the objective names, each once and its
// own first.
func (o *ObjectiveSpec) MetricNames() []string {
	names := append([]string{o.ObjectiveMetricName}, o.AdditionalMetricNames...)
	for _, a := range o.AdditionalObjectives {
		names = append(names, a.MetricName)
	}
	for _, c := range o.Constraints {
		names = append(names, c.MetricName)
	}
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// Strategy returns how the values of a metric become one: as the objective says,
// or else as is best for a metric that is to go in that direction. A nil o says
// nothing.
func (o *ObjectiveSpec) Strategy(metric string, direction ObjectiveType) MetricStrategyType {
	if o != nil {
		for _, s := range o.MetricStrategies {
			if s.Name == metric && s.Value != "" {
				return s.Value
			}
		}
	}
	return direction.strategy()
}

// strategy is the one that is best for a direction.
func (t ObjectiveType) strategy() MetricStrategyType {
	switch t {
	case ObjectiveTypeMinimize:
		return ExtractByMin
	case ObjectiveTypeMaximize:
		return ExtractByMax
	}
	return ExtractByLatest
}

// ObjectiveType is the direction of an objective.
type ObjectiveType string

// The directions of an objective.
const (
	ObjectiveTypeUnknown  ObjectiveType = ""
	ObjectiveTypeMinimize ObjectiveType = "minimize"
	ObjectiveTypeMaximize ObjectiveType = "maximize"
)

// MetricStrategy says how the values of one metric become one value.
// +kubebuilder:pruning:PreserveUnknownFields
type MetricStrategy struct {
	// The metric's name.
	Name string `json:"name,omitempty"`

	// Which value counts: min, max or latest.
	Value MetricStrategyType `json:"value,omitempty"`
}

// MetricStrategyType is a rule that picks one value of a metric.
type MetricStrategyType string

// The rules that pick one value of a metric.
const (
	ExtractByMin    MetricStrategyType = "min"
	ExtractByMax    MetricStrategyType = "max"
	ExtractByLatest MetricStrategyType = "latest"
)

// Metric is what a trial's values of one metric came to. The values are text:
// some metrics, such as architectures, are not numbers.
// +kubebuilder:pruning:PreserveUnknownFields
type Metric struct {
	// The metric's name.
	Name string `json:"name,omitempty"`

	// The least value, or "unavailable".
	Min string `json:"min,omitempty"`

	// The greatest value, or "unavailable".
	Max string `json:"max,omitempty"`

	// The value with the latest time stamp, or "unavailable".
	Latest string `json:"latest,omitempty"`
}

// Value returns the value that a strategy picks, or "unavailable". It is the
// latest for a text, which has neither a least nor a greatest.
func (m *Metric) Value(strategy MetricStrategyType) string {
	value := m.Latest
	switch strategy {
	case ExtractByMin:
		value = m.Min
	case ExtractByMax:
		value = m.Max
	}
	if value == "" || value == UnavailableMetricValue {
		return m.Latest
	}
	return value
}

// Observation is what a trial's metrics came to.
// +kubebuilder:pruning:PreserveUnknownFields
type Observation struct {
	// One entry a metric.
	Metrics []Metric `json:"metrics,omitempty"`
}

// Get returns the metric of that name, or nil. The result points into o; a nil
// o has no metrics.
func (o *Observation) Get(name string) *Metric {
	if o == nil {
		return nil
	}
	for i := range o.Metrics {
		if o.Metrics[i].Name == name {
			return &o.Metrics[i]
		}
	}
	return nil
}
