// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ParameterSpec is one dimension of the search space.
// +kubebuilder:pruning:PreserveUnknownFields
type ParameterSpec struct {
	// The parameter's name, to which trialParameters refer.
	Name string `json:"name,omitempty"`

	// The type of the values: double, int, discrete (numbers from a list) or
	// categorical (strings from a list).
	ParameterType ParameterType `json:"parameterType,omitempty"`

	// The allowed values.
	FeasibleSpace FeasibleSpace `json:"feasibleSpace,omitempty"`

	// In which trials the parameter exists: in all if empty. Not in Katib.
	When *ParameterCondition `json:"when,omitempty"`
}

// ParameterCondition holds in trials in which a parameter has one of the
// given values.
type ParameterCondition struct {
	// The name of a parameter that has a list of values, or is an int.
	Parameter string `json:"parameter"`

	// The values with which the condition holds.
	Values []string `json:"values"`
}

// ParameterType is the type of a parameter's values.
type ParameterType string

// The types of parameters.
const (
	ParameterTypeUnknown     ParameterType = "unknown"
	ParameterTypeDouble      ParameterType = "double"
	ParameterTypeInt         ParameterType = "int"
	ParameterTypeDiscrete    ParameterType = "discrete"
	ParameterTypeCategorical ParameterType = "categorical"
)

// FeasibleSpace is the set of a parameter's values. Numbers are strings:
// "0.01".
// +kubebuilder:pruning:PreserveUnknownFields
type FeasibleSpace struct {
	// The largest value of a double or an int, inclusive.
	Max string `json:"max,omitempty"`

	// The smallest value of a double or an int, inclusive.
	Min string `json:"min,omitempty"`

	// The values of a discrete or categorical parameter.
	List []string `json:"list,omitempty"`

	// The distance between neighboring values of a double or an int, starting
	// from min. A grid needs it for each double; for an int it defaults to 1.
	Step string `json:"step,omitempty"`

	// How values are drawn: uniform (the default), logUniform, normal or
	// logNormal.
	Distribution Distribution `json:"distribution,omitempty"`
}

// Distribution is how values are drawn between min and max.
type Distribution string

// The distributions.
const (
	DistributionUniform    Distribution = "uniform"
	DistributionLogUniform Distribution = "logUniform"
	DistributionNormal     Distribution = "normal"
	DistributionLogNormal  Distribution = "logNormal"
	DistributionUnknown    Distribution = "unknown"
)

// NasConfig is the search space of a neural architecture search.
// +kubebuilder:pruning:PreserveUnknownFields
type NasConfig struct {
	// The shape of the network.
	GraphConfig GraphConfig `json:"graphConfig,omitempty"`

	// The operations for the layers.
	Operations []Operation `json:"operations,omitempty"`
}

// GraphConfig is the shape of a network whose layers are searched.
// +kubebuilder:pruning:PreserveUnknownFields
type GraphConfig struct {
	// The number of layers.
	NumLayers *int32 `json:"numLayers,omitempty"`

	// The size of the input in each dimension.
	InputSizes []int32 `json:"inputSizes,omitempty"`

	// The size of the output in each dimension.
	OutputSizes []int32 `json:"outputSizes,omitempty"`
}

// Operation is one kind of layer, with its parameters.
// +kubebuilder:pruning:PreserveUnknownFields
type Operation struct {
	// The operation's name, for example convolution.
	OperationType string `json:"operationType,omitempty"`

	// The operation's parameters.
	Parameters []ParameterSpec `json:"parameters,omitempty"`
}
