// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

	// The trial's specification.
	Spec TrialSpec `json:"spec,omitempty"`

	// The trial's progress and result.
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

// TrialSpec specifies what to run. The experiment's controller writes it.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialSpec struct {
	// What the experiment optimizes.
	Objective *ObjectiveSpec `json:"objective,omitempty"`

	// The value of each parameter.
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`

	// If all of these are met, the trial is stopped early.
	EarlyStoppingRules []EarlyStoppingRule `json:"earlyStoppingRules,omitempty"`

	// The run object: the rendered template.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	RunSpec *unstructured.Unstructured `json:"runSpec,omitempty"`

	// No run object: a program asks for the trial and runs it. Not in Katib.
	External *ExternalTrials `json:"external,omitempty"`

	// Keep the run object after the trial has ended.
	RetainRun bool `json:"retainRun,omitempty"`

	// How many seconds one run may take. Not in Katib.
	TimeLimitSeconds *int64 `json:"timeLimitSeconds,omitempty"`

	// How often a failed run is retried. Not in Katib.
	MaxRetryCount int32 `json:"maxRetryCount,omitempty"`

	// Where metrics come from.
	MetricsCollector MetricsCollectorSpec `json:"metricsCollector,omitempty"`

	// Labels of the Pods whose metrics count. Default: all Pods of the run.
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

// TrialStatus is the status and result of a trial. Its conditions are Created,
// Running, Succeeded, Killed, Failed, MetricsUnavailable and EarlyStopped.
// +kubebuilder:pruning:PreserveUnknownFields
type TrialStatus struct {
	// When its controller first saw the trial.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the trial ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the controller last changed this status.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// The trial's conditions. The one that changed last is last.
	Conditions Conditions `json:"conditions,omitempty"`

	// The metrics.
	Observation *Observation `json:"observation,omitempty"`

	// For a trial that was stopped early: how many values of the objective it
	// had reported when that was decided.
	StoppedAtStep int32 `json:"stoppedAtStep,omitempty"`

	// Which program has the trial, if programs ask for trials. Not in Katib.
	Lease *TrialLease `json:"lease,omitempty"`

	// How many failed runs were retried. Not in Katib.
	Retries int32 `json:"retries,omitempty"`

	// The resources that the trial's Pods used, if their nodes report that. Not in
	// Katib.
	ResourceUsage *ResourceUsage `json:"resourceUsage,omitempty"`
}

// ResourceUsage is what a trial used while it ran.
type ResourceUsage struct {
	// Total CPU time of all Pods.
	CPUTime metav1.Duration `json:"cpuTime"`

	// The highest memory usage of one Pod. Absent if not measured.
	PeakMemory *resource.Quantity `json:"peakMemory,omitempty"`
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

// IsStopping reports whether the trial is being stopped: that is decided, and
// its run may not have ended yet. Katib's metrics collector only sets
// EarlyStopped; then the completion time is missing.
func (t *Trial) IsStopping() bool {
	return t.Stopping() != nil || t.Status.Conditions.IsTrue(ConditionEarlyStopped) && t.Status.CompletionTime == nil
}

// Stopping returns the condition with which a trial that is being stopped
// will end, nil for any other. Its message says why.
func (t *Trial) Stopping() *Condition {
	for i := range t.Status.Conditions {
		if c := &t.Status.Conditions[i]; c.Status == corev1.ConditionFalse && c.Reason == ReasonTrialStopping {
			return c
		}
	}
	return nil
}

// Stop records in the status that the trial is to be stopped early, at which
// step (0 if unknown), and why: a sentence without a period. Whoever decides
// records this; the trial's controller does the rest.
func (s *TrialStatus) Stop(now metav1.Time, step int, why string) {
	s.StoppedAtStep = int32(min(step, math.MaxInt32))
	s.StopAs(now, ConditionEarlyStopped, why)
}

// StopAs records in the status that the trial is to be stopped, to end with a
// condition, and why.
func (s *TrialStatus) StopAs(now metav1.Time, end ConditionType, why string) {
	s.Conditions.Set(now, end, corev1.ConditionFalse, ReasonTrialStopping, why)
}

// HasObjective reports whether the trial's status has a value of the
// objective metric.
func (t *Trial) HasObjective() bool {
	if t.Spec.Objective == nil {
		return false
	}
	m := t.Status.Observation.Get(t.Spec.Objective.ObjectiveMetricName)
	return m != nil && m.Latest != UnavailableMetricValue
}
