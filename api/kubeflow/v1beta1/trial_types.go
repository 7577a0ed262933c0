// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Trial is one run of the tuned program with one assignment of parameters.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,kubeflow,katib}
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[-1:].status`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type Trial struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to run.
	Spec TrialSpec `json:"spec,omitempty"`

	// How far it is, and what came of it.
	Status TrialStatus `json:"status,omitempty"`
}

// TrialList is a list of trials.
// +kubebuilder:object:root=true
type TrialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The trials.
	Items []Trial `json:"items"`
}

// TrialSpec says what to run. The experiment's controller writes it.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialSpec struct {
	// What the experiment optimises.
	Objective *ObjectiveSpec `json:"objective,omitempty"`

	// The value of each parameter.
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`

	// When all of these come true, the trial is stopped early.
	EarlyStoppingRules []EarlyStoppingRule `json:"earlyStoppingRules,omitempty"`

	// The object that does the work: the rendered template.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	RunSpec *unstructured.Unstructured `json:"runSpec,omitempty"`

	// There is no run object: a program asks for the trial and runs it. Not a
	// field of Katib's.
	External *ExternalTrials `json:"external,omitempty"`

	// Keep the run object after the trial has ended.
	RetainRun bool `json:"retainRun,omitempty"`

	// How many seconds one run may take. Not a field of Katib's.
	TimeLimitSeconds *int64 `json:"timeLimitSeconds,omitempty"`

	// How often a run that failed is followed by another. Not a field of Katib's.
	MaxRetryCount int32 `json:"maxRetryCount,omitempty"`

	// Where metrics come from.
	MetricsCollector MetricsCollectorSpec `json:"metricsCollector,omitempty"`

	// Labels of the Pods whose metrics count. All Pods of the run when empty.
	PrimaryPodLabels map[string]string `json:"primaryPodLabels,omitempty"`

	// The container whose metrics are collected.
	PrimaryContainerName string `json:"primaryContainerName,omitempty"`

	// When the run object has succeeded, as a GJSON query on it.
	SuccessCondition string `json:"successCondition,omitempty"`

	// When the run object has failed, as a GJSON query on it.
	FailureCondition string `json:"failureCondition,omitempty"`

	// Labels that the search algorithm gave this assignment.
	Labels map[string]string `json:"labels,omitempty"`
}

// TrialStatus says how far a trial is, and what came of it. Its conditions are
// Created, Running, Succeeded, Killed, Failed, MetricsUnavailable and
// EarlyStopped.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialStatus struct {
	// When the trial was first seen by its controller.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the trial ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the controller last changed this status.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// What holds of the trial. The one that changed last is last.
	Conditions Conditions `json:"conditions,omitempty"`

	// What the metrics came to.
	Observation *Observation `json:"observation,omitempty"`

	// How many values of the objective a trial that was stopped early had
	// reported when that was decided.
	StoppedAtStep int32 `json:"stoppedAtStep,omitempty"`

	// Which program has the trial, where programs ask for trials. Not a field of
	// Katib's.
	Lease *TrialLease `json:"lease,omitempty"`

	// How many runs failed and were followed by another. Not a field of Katib's.
	Retries int32 `json:"retries,omitempty"`
}

// IsCompleted reports whether the trial has ended, in whatever way.
func (t *Trial) IsCompleted() bool {
	for _, c := range []ConditionType{
		ConditionSucceeded, ConditionFailed, ConditionKilled, ConditionEarlyStopped, ConditionMetricsUnavailable,
	} {
		if t.Status.Conditions.IsTrue(c) {
			return true
		}
	}
	return false
}

// IsStopping reports whether it is decided that the trial is stopped, and its
// run may not have ended yet. Katib's metrics collector says so by EarlyStopped
// alone; then the time of the end is missing.
func (t *Trial) IsStopping() bool {
	return t.Stopping() != nil || t.Status.Conditions.IsTrue(ConditionEarlyStopped) && t.Status.CompletionTime == nil
}

// Stopping returns the condition that a trial which is being stopped will end
// with, nil for any other. Its message says why.
func (t *Trial) Stopping() *Condition {
	for i := range t.Status.Conditions {
		if c := &t.Status.Conditions[i]; c.Status == corev1.ConditionFalse && c.Reason == ReasonTrialStopping {
			return c
		}
	}
	return nil
}

// Stop records in the status that the trial is to be stopped early, at which
// step (0 where it is not known), and why: a sentence without a period. Whoever
// decides it writes this; the trial's controller does the rest.
func (s *TrialStatus) Stop(now metav1.Time, step int, why string) {
	s.StoppedAtStep = int32(min(step, math.MaxInt32))
	s.StopAs(now, ConditionEarlyStopped, why)
}

// StopAs records in the status that the trial is to be stopped, to end with a
// condition, and why.
func (s *TrialStatus) StopAs(now metav1.Time, end ConditionType, why string) {
	s.Conditions.Set(now, end, corev1.ConditionFalse, ReasonTrialStopping, why)
}

// HasObjective reports whether the trial's status holds a value of the
// objective metric.
func (t *Trial) HasObjective() bool {
	if t.Spec.Objective == nil {
		return false
	}
	m := t.Status.Observation.Get(t.Spec.Objective.ObjectiveMetricName)
	return m != nil && m.Latest != UnavailableMetricValue
}
