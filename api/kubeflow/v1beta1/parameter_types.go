// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ParameterSpec is one dimension of the search space.
// +kubebuilder:pruning:PreserveUnknownFields
type ParameterSpec struct {
	// The parameter's name, to which trialParameters refer.
	Name string `json:"name,omitempty"`

	// What the values are: double, int, discrete (numbers from a list) or
	// categorical (any text from a list).
	ParameterType ParameterType `json:"parameterType,omitempty"`

	// Which values are allowed.
	FeasibleSpace FeasibleSpace `json:"feasibleSpace,omitempty"`

	// In which trials the parameter exists: in all of them when empty. Not a
	// field of Katib's.
	When *ParameterCondition `json:"when,omitempty"`
}

// ParameterCondition holds in the trials in which a parameter has one of some
// values.
type ParameterCondition struct {
	// The name of a parameter that has a list of values, or is an int.
	Parameter string `json:"parameter"`

	// The values with which the condition holds.
	Values []string `json:"values"`
}

// ParameterType is what a parameter's values are.
type ParameterType string

// The types of parameters.
const (
	ParameterTypeUnknown     ParameterType = "unknown"
	ParameterTypeDouble      ParameterType = "double"
	ParameterTypeInt         ParameterType = "int"
	ParameterTypeDiscrete    ParameterType = "discrete"
	ParameterTypeCategorical ParameterType = "categorical"
)

// FeasibleSpace is the set of a parameter's values. Numbers are written as
// text: "0.01".
// +kubebuilder:pruning:PreserveUnknownFields
type FeasibleSpace struct {
	// The greatest value of a double or an int, itself allowed.
	Max string `json:"max,omitempty"`

	// The least value of a double or an int, itself allowed.
	Min string `json:"min,omitempty"`

	// The values of a discrete or categorical parameter.
	List []string `json:"list,omitempty"`

	// The distance between neighbouring values of a double or an int, counted
	// from min. A grid needs it for each double; for an int it is 1 when empty.
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

	// The operations that a layer may be.
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

// Operation is one kind of layer, with what may vary in it.
// +kubebuilder:pruning:PreserveUnknownFields
type Operation struct {
	// The operation's name, for example convolution.
	OperationType string `json:"operationType,omitempty"`

	// What may vary in the operation.
	Parameters []ParameterSpec `json:"parameters,omitempty"`
}
