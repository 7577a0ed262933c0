// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OptimizationJob searches for the best parameters of a TrainJob.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type OptimizationJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The search. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="OptimizationJobSpec is immutable and cannot be updated after creation"
	Spec OptimizationJobSpec `json:"spec,omitempty,omitzero"`

	// Its status.
	Status *OptimizationJobStatus `json:"status,omitempty,omitzero"`
}

// OptimizationJobList is what the API server returns for a list.
// +kubebuilder:object:root=true
type OptimizationJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OptimizationJob `json:"items"`
}

// OptimizationJobSpec specifies the search.
// +kubebuilder:validation:XValidation:rule="self.parallelTrials <= self.numTrials",message="parallelTrials cannot exceed numTrials"
// +kubebuilder:validation:XValidation:rule="!has(self.searchAlgorithm.grid) || self.parameters.all(p, has(p.searchSpace.categorical))",message="Grid search requires all parameters to be Categorical; Uniform and LogUniform are not supported."
type OptimizationJobSpec struct {
	// The goal: one objective.
	// +listType=map
	// +listMapKey=metric
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	Objectives []Objective `json:"objectives"`

	// The algorithm: random (the default) or grid.
	// +kubebuilder:default={random: {}}
	SearchAlgorithm *SearchAlgorithm `json:"searchAlgorithm,omitempty"`

	// The parameters of the search.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Parameters []Parameter `json:"parameters"`

	// How many trials to run. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	NumTrials int32 `json:"numTrials,omitempty"`

	// How many of them run at the same time. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ParallelTrials int32 `json:"parallelTrials,omitempty"`

	// The TrainJob of each trial. It gets its parameters in the variables
	// KUBEFLOW_TRAINER_OPT_<NAME>.
	// +required
	TrainJobTemplate TrainJobTemplateSpec `json:"trainJobTemplate,omitzero"`
}

// ObjectiveDirection is the direction of an objective.
// +kubebuilder:validation:Enum=Maximize;Minimize
type ObjectiveDirection string

// The directions of an objective.
const (
	Maximize ObjectiveDirection = "Maximize"
	Minimize ObjectiveDirection = "Minimize"
)

// Objective is a metric to optimize.
type Objective struct {
	// The metric.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Metric string `json:"metric"`

	// Minimize, the default, or Maximize.
	// +kubebuilder:default=Minimize
	Direction ObjectiveDirection `json:"direction,omitempty"`
}

// SearchAlgorithm is the search algorithm: exactly one field is set.
// +kubebuilder:validation:XValidation:rule="[has(self.random), has(self.grid)].filter(x, x).size() == 1",message="exactly one of the fields in [random grid] must be set"
type SearchAlgorithm struct {
	// At random.
	Random *RandomAlgorithm `json:"random,omitempty"`

	// All combinations, in order.
	Grid *GridAlgorithm `json:"grid,omitempty"`
}

// RandomAlgorithm is random search.
type RandomAlgorithm struct {
	// The seed. If empty, one is chosen.
	Seed *int64 `json:"seed,omitempty"`
}

// GridAlgorithm is a grid search.
type GridAlgorithm struct{}

// Parameter is one parameter of the search.
type Parameter struct {
	// Its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// Its values.
	SearchSpace *SearchSpace `json:"searchSpace"`
}

// SearchSpace is the values of a parameter: exactly one field is set.
// +kubebuilder:validation:XValidation:rule="!has(self.logUniform) || double(self.logUniform.min) > 0.0",message="min must be strictly greater than 0"
// +kubebuilder:validation:XValidation:rule="[has(self.uniform), has(self.logUniform), has(self.categorical)].filter(x, x).size() == 1",message="exactly one of the fields in [uniform logUniform categorical] must be set"
type SearchSpace struct {
	// A range with a uniform distribution.
	Uniform *RangeSpace `json:"uniform,omitempty"`

	// A range with a log-uniform distribution; min is above 0.
	LogUniform *RangeSpace `json:"logUniform,omitempty"`

	// A list.
	Categorical *CategoricalSpace `json:"categorical,omitempty"`
}

// RangeSpace is a range of numbers.
// +kubebuilder:validation:XValidation:rule="double(self.min) < double(self.max)",message="min must be strictly less than max"
type RangeSpace struct {
	// The minimum, a decimal number.
	// +kubebuilder:validation:Pattern="^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"
	// +kubebuilder:validation:MaxLength=64
	Min string `json:"min"`

	// The maximum, above min.
	// +kubebuilder:validation:Pattern="^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"
	// +kubebuilder:validation:MaxLength=64
	Max string `json:"max"`

	// Float, the default, or Int.
	// +kubebuilder:default=Float
	Type ParameterType `json:"type,omitempty"`
}

// ParameterType is the type of a range's values.
// +kubebuilder:validation:Enum=Int;Float
type ParameterType string

// The types of a range's values.
const (
	Int   ParameterType = "Int"
	Float ParameterType = "Float"
)

// CategoricalSpace is a list of values.
type CategoricalSpace struct {
	// The values.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=64
	Choices []string `json:"choices,omitempty"`
}

// TrainJobTemplateSpec is the TrainJob of each trial.
type TrainJobTemplateSpec struct {
	// Labels and annotations.
	// +kubebuilder:validation:XPreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to train, and where.
	// +optional
	Spec TrainJobSpec `json:"spec,omitzero"`
}

// OptimizationJobStatus is the status of a search.
// +kubebuilder:pruning:PreserveUnknownFields
type OptimizationJobStatus struct {
	// The search's conditions: Complete or Failed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=100
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The best trial so far.
	Result *Result `json:"result,omitempty"`
}

// Result is the best trial of a search.
type Result struct {
	// Its TrainJob.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	TrainJobName string `json:"trainJobName"`

	// Its parameters.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Parameters []ParameterAssignment `json:"parameters,omitempty"`
}

// ParameterAssignment is the value of a parameter.
type ParameterAssignment struct {
	// The parameter.
	Name string `json:"name"`

	// Its value.
	Value string `json:"value"`
}
