// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AlgorithmSpec chooses how to search.
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

	// The setting's value, as text.
	Value string `json:"value,omitempty"`
}

// EarlyStoppingSpec chooses how trials without prospects are found and ended.
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

	// The setting's value, as text.
	Value string `json:"value,omitempty"`
}

// EarlyStoppingRule ends a trial when it comes true.
// +kubebuilder:pruning:PreserveUnknownFields
type EarlyStoppingRule struct {
	// The metric that is compared.
	Name string `json:"name,omitempty"`

	// The value that the metric is compared with.
	Value string `json:"value,omitempty"`

	// How the metric compares with the value when the rule is true: equal,
	// less or greater.
	Comparison ComparisonType `json:"comparison,omitempty"`

	// How many values of the metric must have come before the rule is tried.
	// From the first one when empty.
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

	// The parameter's value, as text.
	Value string `json:"value,omitempty"`
}
