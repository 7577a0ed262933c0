// SPDX-License-Identifier: Apache-2.0

package v1beta1

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
	// that are not listed take min when minimizing and max when maximizing.
	MetricStrategies []MetricStrategy `json:"metricStrategies,omitempty"`
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
