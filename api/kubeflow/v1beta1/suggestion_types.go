// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Suggestion is where an experiment asks for assignments of parameters, and
// where the search algorithm answers. It has the experiment's name.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,kubeflow,katib}
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[-1:].status`
// +kubebuilder:printcolumn:name=Requested,type=string,JSONPath=`.spec.requests`
// +kubebuilder:printcolumn:name=Assigned,type=string,JSONPath=`.status.suggestionCount`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type Suggestion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is asked.
	Spec SuggestionSpec `json:"spec,omitempty"`

	// What is answered.
	Status SuggestionStatus `json:"status,omitempty"`
}

// SuggestionList is a list of suggestions.
// +kubebuilder:object:root=true
type SuggestionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The suggestions.
	Items []Suggestion `json:"items"`
}

// SuggestionSpec is what an experiment asks of a search algorithm.
// +kubebuilder:pruning:PreserveUnknownFields
type SuggestionSpec struct {
	// How to search.
	Algorithm *AlgorithmSpec `json:"algorithm,omitempty"`

	// How trials without prospects are found and ended early.
	EarlyStopping *EarlyStoppingSpec `json:"earlyStopping,omitempty"`

	// How many assignments are asked for, all told.
	Requests int32 `json:"requests,omitempty"`

	// Whether the search can go on after the experiment has ended.
	ResumePolicy ResumePolicyType `json:"resumePolicy,omitempty"`
}

// SuggestionStatus is what a search algorithm answered. Its conditions are
// Created, DeploymentReady, Running, Succeeded and Failed.
// +kubebuilder:pruning:PreserveUnknownFields
type SuggestionStatus struct {
	// Settings that the algorithm changed. They win over the spec's.
	AlgorithmSettings []AlgorithmSetting `json:"algorithmSettings,omitempty"`

	// How many assignments were made, all told.
	SuggestionCount int32 `json:"suggestionCount,omitempty"`

	// The assignments.
	Suggestions []TrialAssignment `json:"suggestions,omitempty"`

	// When the suggestion was first seen by its controller.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the search ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the controller last changed this status.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// What holds of the suggestion. The one that changed last is last.
	Conditions Conditions `json:"conditions,omitempty"`
}

// TrialAssignment is one assignment of parameters, for one trial.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialAssignment struct {
	// The value of each parameter.
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`

	// The name of the trial.
	Name string `json:"name,omitempty"`

	// When all of these come true, the trial is stopped early.
	EarlyStoppingRules []EarlyStoppingRule `json:"earlyStoppingRules,omitempty"`

	// Labels for the trial and its Pods.
	Labels map[string]string `json:"labels,omitempty"`
}

// IsCompleted reports whether the search has ended, well or not.
func (s *Suggestion) IsCompleted() bool {
	return s.Status.Conditions.IsTrue(ConditionSucceeded) || s.Status.Conditions.IsTrue(ConditionFailed)
}
