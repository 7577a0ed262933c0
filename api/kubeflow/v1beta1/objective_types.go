// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "slices"

// ObjectiveSpec specifies the metric to optimize, and the goal.
// +kubebuilder:pruning:PreserveUnknownFields
type ObjectiveSpec struct {
	// The direction: minimize or maximize.
	Type ObjectiveType `json:"type,omitempty"`

	// The value of the objective at which the experiment has succeeded. Without
	// a goal it continues until maxTrialCount trials have ended.
	Goal *float64 `json:"goal,omitempty"`

	// The name of the metric to optimize, as the program reports it.
	ObjectiveMetricName string `json:"objectiveMetricName,omitempty"`

	// Names of additional metrics to collect. They do not influence the
	// search.
	AdditionalMetricNames []string `json:"additionalMetricNames,omitempty"`

	// Which of a metric's reported values counts. Metrics that are not listed use
	// min when minimizing and max when maximizing; those in constraints use
	// latest.
	MetricStrategies []MetricStrategy `json:"metricStrategies,omitempty"`

	// Additional metrics to optimize at the same time. Then there is no single
	// best trial: status.optimalTrials has the Pareto-optimal ones. Not in
	// Katib.
	AdditionalObjectives []AdditionalObjective `json:"additionalObjectives,omitempty"`

	// Constraints that a trial's metrics must satisfy. Not in Katib.
	Constraints []MetricConstraint `json:"constraints,omitempty"`
}

// AdditionalObjective is an additional metric to optimize.
type AdditionalObjective struct {
	// The direction: minimize or maximize.
	Type ObjectiveType `json:"type"`

	// The name of the metric, as the program reports it.
	MetricName string `json:"metricName"`
}

// MetricConstraint is the allowed range of a metric.
type MetricConstraint struct {
	// The name of the metric, as the program reports it.
	MetricName string `json:"metricName"`

	// The smallest allowed value.
	Min *float64 `json:"min,omitempty"`

	// The largest allowed value.
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

// Strategy returns which value of a metric counts: the objective's setting, or
// else the default for that direction. o may be nil.
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

// strategy is the default for a direction.
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

// MetricStrategy specifies which value of a metric counts.
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

// Metric summarizes a trial's values of one metric. The values are strings:
// some metrics, such as architectures, are not numbers.
// +kubebuilder:pruning:PreserveUnknownFields
type Metric struct {
	// The metric's name.
	Name string `json:"name,omitempty"`

	// The minimum, or "unavailable".
	Min string `json:"min,omitempty"`

	// The maximum, or "unavailable".
	Max string `json:"max,omitempty"`

	// The value with the latest timestamp, or "unavailable".
	Latest string `json:"latest,omitempty"`
}

// Value returns the value that a strategy selects, or "unavailable". For a
// text, which has no minimum or maximum, it is the latest.
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

// Observation is a summary of a trial's metrics.
// +kubebuilder:pruning:PreserveUnknownFields
type Observation struct {
	// One entry per metric.
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
