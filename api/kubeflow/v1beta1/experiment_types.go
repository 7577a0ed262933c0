// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Experiment tunes a program: it searches the parameters that make the
// program's objective metric best.
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

	// How far it is.
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

// ExperimentSpec says what to tune, and how.
// +kubebuilder:pruning:PreserveUnknownFields
type ExperimentSpec struct {
	// The search space. Either this or nasConfig is set.
	Parameters []ParameterSpec `json:"parameters,omitempty"`

	// What must hold of the parameters of each trial: expressions that are true
	// or false, such as "width * depth <= 4096". Not a field of Katib's.
	ParameterConstraints []string `json:"parameterConstraints,omitempty"`

	// Trials to begin with, in this order. Not a field of Katib's.
	InitialTrials []InitialTrial `json:"initialTrials,omitempty"`

	// Earlier experiments to learn from. Not a field of Katib's.
	WarmStart *WarmStartSpec `json:"warmStart,omitempty"`

	// What to optimise.
	Objective *ObjectiveSpec `json:"objective,omitempty"`

	// How to search.
	Algorithm *AlgorithmSpec `json:"algorithm,omitempty"`

	// How trials without prospects are found and ended early.
	EarlyStopping *EarlyStoppingSpec `json:"earlyStopping,omitempty"`

	// What one run of the program is.
	TrialTemplate *TrialTemplate `json:"trialTemplate,omitempty"`

	// How many trials may run at the same time. 3 when empty.
	ParallelTrialCount *int32 `json:"parallelTrialCount,omitempty"`

	// After how many ended trials the experiment has succeeded. No bound when
	// empty: it goes on until the goal is reached or the search ends.
	MaxTrialCount *int32 `json:"maxTrialCount,omitempty"`

	// After more failed trials than this the experiment has failed. No bound
	// when empty.
	MaxFailedTrialCount *int32 `json:"maxFailedTrialCount,omitempty"`

	// Make no more trials for now. Not a field of Katib's.
	Suspend bool `json:"suspend,omitempty"`

	// What suspend means for the trials that run: FinishTrials (the default) or
	// SuspendTrials. Not a field of Katib's.
	SuspendPolicy SuspendPolicyType `json:"suspendPolicy,omitempty"`

	// After how many seconds, without those in which it is suspended, the
	// experiment ends and its trials are stopped. No bound when empty. Not a field
	// of Katib's.
	TimeLimitSeconds *int64 `json:"timeLimitSeconds,omitempty"`

	// Stop the trials that still run when the experiment ends, as when the goal
	// is reached. Not a field of Katib's.
	StopTrialsAtEnd bool `json:"stopTrialsAtEnd,omitempty"`

	// Where metrics come from. The program's standard output when empty.
	MetricsCollectorSpec *MetricsCollectorSpec `json:"metricsCollectorSpec,omitempty"`

	// The search space of a neural architecture search.
	NasConfig *NasConfig `json:"nasConfig,omitempty"`

	// Whether the experiment can go on after it has succeeded, with a greater
	// maxTrialCount: Never (the default), LongRunning or FromVolume.
	ResumePolicy ResumePolicyType `json:"resumePolicy,omitempty"`
}

// InitialTrial is a trial that the user asks for.
type InitialTrial struct {
	// The value of each parameter that the trial has.
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments"`
}

// WarmStartSpec says what is known before the first trial.
type WarmStartSpec struct {
	// Names of experiments of the same namespace whose trials are learnt from,
	// as far as their parameters have the same names.
	Experiments []string `json:"experiments"`
}

// SuspendPolicyType is what becomes of the running trials of a suspended
// experiment.
type SuspendPolicyType string

// The suspend policies.
const (
	// FinishTrials lets trials that run go on to their end.
	FinishTrials SuspendPolicyType = "FinishTrials"
	// SuspendTrials ends their Pods. When the experiment goes on they run again,
	// from whatever their programs kept.
	SuspendTrials SuspendPolicyType = "SuspendTrials"
)

// ResumePolicyType is whether and how an ended experiment can go on.
type ResumePolicyType string

// The resume policies. Katib keeps the algorithm's process for LongRunning and
// a volume of its state for FromVolume. An algorithm's state is rebuilt from
// the trials here, so that both mean the same: the experiment can go on.
const (
	NeverResume ResumePolicyType = "Never"
	LongRunning ResumePolicyType = "LongRunning"
	FromVolume  ResumePolicyType = "FromVolume"
)

// ExperimentStatus says how far an experiment is. Its conditions are Created,
// Running, Restarting, Succeeded and Failed, and Suspended, which Katib does not
// have.
// +kubebuilder:pruning:PreserveUnknownFields
type ExperimentStatus struct {
	// When the experiment was first seen by its controller.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the experiment ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the controller last changed this status.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// For how many seconds the experiment was suspended, or had ended before it
	// went on, without the present time of that. Not a field of Katib's.
	SuspendedSeconds int64 `json:"suspendedSeconds,omitempty"`

	// What holds of the experiment. The one that changed last is last.
	Conditions Conditions `json:"conditions,omitempty"`

	// The best trial so far.
	CurrentOptimalTrial OptimalTrial `json:"currentOptimalTrial,omitempty"`

	// The trials that no other is better than, where there are several
	// objectives: the first fifty by the first objective. Not a field of Katib's.
	OptimalTrials []OptimalTrial `json:"optimalTrials,omitempty"`

	// Names of the trials that run.
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

	// The number of trials that run.
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

	// What the trial's metrics came to.
	Observation Observation `json:"observation,omitempty"`
}

// IsCompleted reports whether the experiment has ended, well or not.
func (e *Experiment) IsCompleted() bool {
	return e.Status.Conditions.IsTrue(ConditionSucceeded) || e.Status.Conditions.IsTrue(ConditionFailed)
}

// ActiveTime is for how long the experiment has been at work until now, without
// the time in which it was suspended or had ended.
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

// IsRestartable reports whether the experiment, once ended, can go on: it
// succeeded because maxTrialCount was reached, and its resume policy allows it.
func (e *Experiment) IsRestartable() bool {
	c := e.Status.Conditions.Get(ConditionSucceeded)
	return c != nil && e.Status.Conditions.IsTrue(ConditionSucceeded) &&
		c.Reason == ReasonExperimentMaxTrialsReached &&
		(e.Spec.ResumePolicy == LongRunning || e.Spec.ResumePolicy == FromVolume)
}
