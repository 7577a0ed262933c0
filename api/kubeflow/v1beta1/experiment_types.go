// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Experiment tunes a program: it searches for the parameters that optimize the program's
// objective metric.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,kubeflow,katib}
// +kubebuilder:printcolumn:name=Type,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[-1:].status`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to tune, and how.
	Spec ExperimentSpec `json:"spec,omitempty"`

	// The experiment's status.
	Status ExperimentStatus `json:"status,omitempty"`
}

// ExperimentList is a list of experiments.
// +kubebuilder:object:root=true
type ExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The experiments.
	Items []Experiment `json:"items"`
}

// ExperimentSpec specifies what to tune, and how.
// +kubebuilder:pruning:PreserveUnknownFields
type ExperimentSpec struct {
	// The search space. Either this or nasConfig is set.
	Parameters []ParameterSpec `json:"parameters,omitempty"`

	// Constraints on the parameters of each trial: boolean expressions, such as
	// "width * depth <= 4096". Not in Katib.
	ParameterConstraints []string `json:"parameterConstraints,omitempty"`

	// Trials to start with, in this order. Not in Katib.
	InitialTrials []InitialTrial `json:"initialTrials,omitempty"`

	// Earlier experiments to learn from. Not in Katib.
	WarmStart *WarmStartSpec `json:"warmStart,omitempty"`

	// What to optimize.
	Objective *ObjectiveSpec `json:"objective,omitempty"`

	// How to search.
	Algorithm *AlgorithmSpec `json:"algorithm,omitempty"`

	// How unpromising trials are detected and stopped early.
	EarlyStopping *EarlyStoppingSpec `json:"earlyStopping,omitempty"`

	// What one trial runs.
	TrialTemplate *TrialTemplate `json:"trialTemplate,omitempty"`

	// How many trials may run at the same time. Default 3.
	ParallelTrialCount *int32 `json:"parallelTrialCount,omitempty"`

	// The number of completed trials after which the experiment has
	// succeeded. No limit if empty: it continues until the goal is reached or
	// the search ends.
	MaxTrialCount *int32 `json:"maxTrialCount,omitempty"`

	// If more trials than this fail, the experiment has failed. No limit if
	// empty.
	MaxFailedTrialCount *int32 `json:"maxFailedTrialCount,omitempty"`

	// Create no more trials for now. Not in Katib.
	Suspend bool `json:"suspend,omitempty"`

	// What suspend does to running trials: FinishTrials (the default) or
	// SuspendTrials. Not in Katib.
	SuspendPolicy SuspendPolicyType `json:"suspendPolicy,omitempty"`

	// The number of seconds, excluding suspension, after which the experiment ends
	// and its trials are stopped. No limit if empty. Not in Katib.
	TimeLimitSeconds *int64 `json:"timeLimitSeconds,omitempty"`

	// Stop the trials that are still running when the experiment ends, for
	// example because the goal is reached. Not in Katib.
	StopTrialsAtEnd bool `json:"stopTrialsAtEnd,omitempty"`

	// Where metrics come from. Default: the program's standard output.
	MetricsCollectorSpec *MetricsCollectorSpec `json:"metricsCollectorSpec,omitempty"`

	// The search space of a neural architecture search.
	NasConfig *NasConfig `json:"nasConfig,omitempty"`

	// Whether the experiment can be resumed after it has succeeded, with a
	// greater maxTrialCount: Never (the default), LongRunning or FromVolume.
	ResumePolicy ResumePolicyType `json:"resumePolicy,omitempty"`
}

// InitialTrial is a trial that the user requests.
type InitialTrial struct {
	// The value of each parameter that the trial has.
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments"`
}

// WarmStartSpec specifies what is known before the first trial.
type WarmStartSpec struct {
	// Names of experiments in the same namespace to learn from, as far as
	// their parameters have the same names.
	Experiments []string `json:"experiments"`
}

// SuspendPolicyType is what happens to the running trials of a suspended
// experiment.
type SuspendPolicyType string

// The suspend policies.
const (
	// FinishTrials lets running trials finish.
	FinishTrials SuspendPolicyType = "FinishTrials"
	// SuspendTrials terminates their Pods. When the experiment resumes they run
	// again, from whatever state their programs saved.
	SuspendTrials SuspendPolicyType = "SuspendTrials"
)

// ResumePolicyType is whether and how a completed experiment can be resumed.
type ResumePolicyType string

// The resume policies. Katib keeps the algorithm's process for LongRunning and
// a volume of its state for FromVolume. Here an algorithm's state is rebuilt
// from the trials, so both mean the same: the experiment can be resumed.
const (
	NeverResume ResumePolicyType = "Never"
	LongRunning ResumePolicyType = "LongRunning"
	FromVolume  ResumePolicyType = "FromVolume"
)

// ExperimentStatus is the status of an experiment. Its conditions are Created,
// Running, Restarting, Succeeded and Failed, and Suspended, which Katib does not
// have.
// +kubebuilder:pruning:PreserveUnknownFields
type ExperimentStatus struct {
	// When its controller first saw the experiment.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the experiment ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the controller last changed this status.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// For how many seconds the experiment was suspended, or complete before it
	// resumed, excluding the current such period. Not in Katib.
	SuspendedSeconds int64 `json:"suspendedSeconds,omitempty"`

	// The experiment's conditions. The one that changed last is last.
	Conditions Conditions `json:"conditions,omitempty"`

	// The best trial so far.
	CurrentOptimalTrial OptimalTrial `json:"currentOptimalTrial,omitempty"`

	// The Pareto-optimal trials, if there are several objectives: the first fifty
	// by the first objective. Not in Katib.
	OptimalTrials []OptimalTrial `json:"optimalTrials,omitempty"`

	// Names of the running trials.
	RunningTrialList []string `json:"runningTrialList,omitempty"`

	// Names of the trials that have not started to run.
	PendingTrialList []string `json:"pendingTrialList,omitempty"`

	// Names of the trials that failed.
	FailedTrialList []string `json:"failedTrialList,omitempty"`

	// Names of the trials that succeeded.
	SucceededTrialList []string `json:"succeededTrialList,omitempty"`

	// Names of the trials that were killed.
	KilledTrialList []string `json:"killedTrialList,omitempty"`

	// Names of the trials that were stopped early.
	EarlyStoppedTrialList []string `json:"earlyStoppedTrialList,omitempty"`

	// Names of the trials that ended without reporting the objective metric.
	MetricsUnavailableTrialList []string `json:"metricsUnavailableTrialList,omitempty"`

	// The number of all trials.
	Trials int32 `json:"trials,omitempty"`

	// The number of trials that succeeded.
	TrialsSucceeded int32 `json:"trialsSucceeded,omitempty"`

	// The number of trials that failed.
	TrialsFailed int32 `json:"trialsFailed,omitempty"`

	// The number of trials that were killed.
	TrialsKilled int32 `json:"trialsKilled,omitempty"`

	// The number of trials that have not started to run.
	TrialsPending int32 `json:"trialsPending,omitempty"`

	// The number of running trials.
	TrialsRunning int32 `json:"trialsRunning,omitempty"`

	// The number of trials that were stopped early.
	TrialsEarlyStopped int32 `json:"trialsEarlyStopped,omitempty"`

	// The number of trials that ended without reporting the objective metric.
	TrialMetricsUnavailable int32 `json:"trialMetricsUnavailable,omitempty"`
}

// OptimalTrial is the trial with the best objective.
// +kubebuilder:pruning:PreserveUnknownFields
type OptimalTrial struct {
	// The trial's name.
	BestTrialName string `json:"bestTrialName,omitempty"`

	// The trial's parameters.
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`

	// The trial's metrics.
	Observation Observation `json:"observation,omitempty"`
}

// IsCompleted reports whether the experiment has succeeded or failed.
func (e *Experiment) IsCompleted() bool {
	return e.Status.Conditions.IsTrue(ConditionSucceeded) || e.Status.Conditions.IsTrue(ConditionFailed)
}

// ActiveTime is how long the experiment has been active until now, excluding
// the time when it was suspended or complete.
func (e *Experiment) ActiveTime(now time.Time) time.Duration {
	if e.Status.StartTime == nil {
		return 0
	}
	if c := e.Status.Conditions.Get(ConditionSuspended); c != nil && c.Status == corev1.ConditionTrue {
		now = c.LastTransitionTime.Time
	}
	if e.Status.CompletionTime != nil && e.Status.CompletionTime.Time.Before(now) {
		now = e.Status.CompletionTime.Time
	}
	return max(0, now.Sub(e.Status.StartTime.Time)-time.Duration(e.Status.SuspendedSeconds)*time.Second)
}

// IsRestartable reports whether a completed experiment can be resumed: it
// succeeded because maxTrialCount was reached, and its resume policy allows it.
func (e *Experiment) IsRestartable() bool {
	c := e.Status.Conditions.Get(ConditionSucceeded)
	return c != nil && e.Status.Conditions.IsTrue(ConditionSucceeded) &&
		c.Reason == ReasonExperimentMaxTrialsReached &&
		(e.Spec.ResumePolicy == LongRunning || e.Spec.ResumePolicy == FromVolume)
}
