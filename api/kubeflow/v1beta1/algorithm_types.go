// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AlgorithmSpec selects the search algorithm.
// +kubebuilder:pruning:PreserveUnknownFields
type AlgorithmSpec struct {
	// The algorithm's name: random, grid, sobol, tpe, …
	AlgorithmName string `json:"algorithmName,omitempty"`

	// The algorithm's settings, for example random_state, the seed.
	AlgorithmSettings []AlgorithmSetting `json:"algorithmSettings,omitempty"`
}

// AlgorithmSetting is one setting of a search algorithm.
// +kubebuilder:pruning:PreserveUnknownFields
type AlgorithmSetting struct {
	// The setting's name.
	Name string `json:"name,omitempty"`

	// The setting's value, as a string.
	Value string `json:"value,omitempty"`
}

// EarlyStoppingSpec selects how unpromising trials are detected and stopped.
// +kubebuilder:pruning:PreserveUnknownFields
type EarlyStoppingSpec struct {
	// The algorithm's name, for example medianstop.
	AlgorithmName string `json:"algorithmName,omitempty"`

	// The algorithm's settings.
	AlgorithmSettings []EarlyStoppingSetting `json:"algorithmSettings,omitempty"`
}

// EarlyStoppingSetting is one setting of an early-stopping algorithm.
// +kubebuilder:pruning:PreserveUnknownFields
type EarlyStoppingSetting struct {
	// The setting's name.
	Name string `json:"name,omitempty"`

	// The setting's value, as a string.
	Value string `json:"value,omitempty"`
}

// EarlyStoppingRule stops a trial when it is met.
// +kubebuilder:pruning:PreserveUnknownFields
type EarlyStoppingRule struct {
	// The metric that is compared.
	Name string `json:"name,omitempty"`

	// The value that the metric is compared with.
	Value string `json:"value,omitempty"`

	// The comparison of the metric with the value that meets the rule: equal,
	// less or greater.
	Comparison ComparisonType `json:"comparison,omitempty"`

	// How many values of the metric must be reported before the rule is
	// checked. If empty, it is checked from the first one.
	StartStep int `json:"startStep,omitempty"`
}

// ComparisonType is how a metric compares with an early-stopping rule's value.
type ComparisonType string

// The comparisons of early-stopping rules.
const (
	ComparisonTypeEqual   ComparisonType = "equal"
	ComparisonTypeLess    ComparisonType = "less"
	ComparisonTypeGreater ComparisonType = "greater"
)

// ParameterAssignment gives one parameter of the search space a value.
// +kubebuilder:pruning:PreserveUnknownFields
type ParameterAssignment struct {
	// The parameter's name.
	Name string `json:"name,omitempty"`

	// The parameter's value, as a string.
	Value string `json:"value,omitempty"`
}
