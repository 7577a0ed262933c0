// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Suggestion is how an experiment requests parameter assignments from the search algorithm.
// It has the experiment's name.
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

	// The request.
	Spec SuggestionSpec `json:"spec,omitempty"`

	// The response.
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

// SuggestionSpec is an experiment's request to a search algorithm.
// +kubebuilder:pruning:PreserveUnknownFields
type SuggestionSpec struct {
	// How to search.
	Algorithm *AlgorithmSpec `json:"algorithm,omitempty"`

	// How unpromising trials are detected and stopped early.
	EarlyStopping *EarlyStoppingSpec `json:"earlyStopping,omitempty"`

	// The total number of requested assignments.
	Requests int32 `json:"requests,omitempty"`

	// Whether the search can be resumed after the experiment has ended.
	ResumePolicy ResumePolicyType `json:"resumePolicy,omitempty"`
}

// SuggestionStatus is a search algorithm's response. Its conditions are
// Created, DeploymentReady, Running, Succeeded and Failed.
// +kubebuilder:pruning:PreserveUnknownFields
type SuggestionStatus struct {
	// Settings that the algorithm changed. They override the spec's.
	AlgorithmSettings []AlgorithmSetting `json:"algorithmSettings,omitempty"`

	// The total number of assignments made.
	SuggestionCount int32 `json:"suggestionCount,omitempty"`

	// The assignments.
	Suggestions []TrialAssignment `json:"suggestions,omitempty"`

	// When its controller first saw the suggestion.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the search ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the controller last changed this status.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// The suggestion's conditions. The one that changed last is last.
	Conditions Conditions `json:"conditions,omitempty"`
}

// TrialAssignment is one assignment of parameters, for one trial.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialAssignment struct {
	// The value of each parameter.
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`

	// The name of the trial.
	Name string `json:"name,omitempty"`

	// If all of these are met, the trial is stopped early.
	EarlyStoppingRules []EarlyStoppingRule `json:"earlyStoppingRules,omitempty"`

	// Labels for the trial and its Pods.
	Labels map[string]string `json:"labels,omitempty"`
}

// IsCompleted reports whether the search has succeeded or failed.
func (s *Suggestion) IsCompleted() bool {
	return s.Status.Conditions.IsTrue(ConditionSucceeded) || s.Status.Conditions.IsTrue(ConditionFailed)
}
