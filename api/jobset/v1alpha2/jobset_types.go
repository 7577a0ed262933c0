// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobSet is several batch Jobs that are one piece of work.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TerminalState",JSONPath=".status.terminalState",type=string,description="Final state of JobSet"
// +kubebuilder:printcolumn:name="Restarts",JSONPath=".status.restarts",type=string,description="Number of restarts"
// +kubebuilder:printcolumn:name="Completed",type="string",priority=0,JSONPath=".status.conditions[?(@.type==\"Completed\")].status"
// +kubebuilder:printcolumn:name="Suspended",type="string",JSONPath=".spec.suspend",description="JobSet suspended"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time this JobSet was created"
type JobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to run.
	Spec JobSetSpec `json:"spec,omitempty"`

	// How it goes.
	Status JobSetStatus `json:"status,omitempty"`
}

// JobSetList is what the API server returns for a list of JobSets.
// +kubebuilder:object:root=true
type JobSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []JobSet `json:"items"`
}

// JobSetSpec says what to run.
// +kubebuilder:pruning:PreserveUnknownFields
type JobSetSpec struct {
	// The templates of the set's Jobs.
	// +listType=map
	// +listMapKey=name
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// How Pods reach each other. Cannot be changed.
	Network *Network `json:"network,omitempty"`

	// When the set has succeeded: by default, when all its Jobs have. Cannot be
	// changed.
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// What happens when a Job fails: without a policy, the set fails. Cannot be
	// changed.
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// In which order replicated jobs start. Superseded by dependsOn, and not to
	// be combined with it. Cannot be changed.
	StartupPolicy *StartupPolicy `json:"startupPolicy,omitempty"`

	// No Pod of the set runs while this is true.
	Suspend *bool `json:"suspend,omitempty"`

	// The Pod whose host name all Jobs and Pods bear as a label.
	Coordinator *Coordinator `json:"coordinator,omitempty"`

	// Whose work the set is, when it is not the built-in controller's. Cannot be
	// changed.
	ManagedBy *string `json:"managedBy,omitempty"`

	// For how many seconds the set is kept after its end. For ever when empty.
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Volumes that are made for the set. Cannot be changed.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	VolumeClaimPolicies []VolumeClaimPolicy `json:"volumeClaimPolicies,omitempty"`
}

// ReplicatedJob is a template of Jobs.
// +kubebuilder:pruning:PreserveUnknownFields
type ReplicatedJob struct {
	// The name, a part of the names of its Jobs.
	Name string `json:"name"`

	// A group of replicated jobs, in which Jobs are counted through. Default
	// "default".
	// +kubebuilder:default=default
	GroupName string `json:"groupName,omitempty"`

	// The Job: metadata and spec as of batch/v1. Its Pods can be changed while
	// the set is suspended.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template batchv1.JobTemplateSpec `json:"template"`

	// How many Jobs are made of the template. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// What other replicated jobs, all of them earlier in the list, must have
	// come to before the Jobs of this one are made. Cannot be changed.
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=name
	DependsOn []DependsOn `json:"dependsOn,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// DependsOn is what another replicated job must have come to.
type DependsOn struct {
	// The other replicated job.
	Name string `json:"name"`

	// Ready: all its Jobs have the Pods that they need; Complete: all have
	// succeeded.
	// +kubebuilder:validation:Enum=Ready;Complete
	Status DependsOnStatus `json:"status"`
}

// DependsOnStatus is what a replicated job must have come to.
type DependsOnStatus string

// What a replicated job may wait for.
const (
	DependencyReady    DependsOnStatus = "Ready"
	DependencyComplete DependsOnStatus = "Complete"
)

// Network says how the set's Pods reach each other.
type Network struct {
	// Pods have the names <job>-<pod index>.<subdomain>. Default true.
	EnableDNSHostnames *bool `json:"enableDNSHostnames,omitempty"`

	// The name of the Service. Default: the set's.
	Subdomain string `json:"subdomain,omitempty"`

	// Names lead to Pods that are not ready too. Default true.
	PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses,omitempty"`
}

// Operator says how many of the Jobs that a policy is about must succeed.
type Operator string

// The operators of a success policy.
const (
	OperatorAll Operator = "All"
	OperatorAny Operator = "Any"
)

// SuccessPolicy says when a set has succeeded.
type SuccessPolicy struct {
	// All or Any of the Jobs.
	// +kubebuilder:validation:Enum=All;Any
	Operator Operator `json:"operator"`

	// The replicated jobs that count. All when empty.
	// +listType=atomic
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// FailurePolicy says what happens when a Job fails.
type FailurePolicy struct {
	// How often the set is restarted at most.
	MaxRestarts int32 `json:"maxRestarts,omitempty"`

	// Recreate makes each Job anew as soon as its predecessor is gone;
	// BlockingRecreate waits until all are.
	// +kubebuilder:default=Recreate
	// +kubebuilder:validation:Enum=Recreate;BlockingRecreate;InPlaceRestart
	RestartStrategy RestartStrategy `json:"restartStrategy,omitempty"`

	// Rules for certain failures; the first that matches is followed. Without
	// one, the set is restarted.
	Rules []FailurePolicyRule `json:"rules,omitempty"`
}

// RestartStrategy says how a set is restarted.
type RestartStrategy string

// The ways to restart. InPlaceRestart is refused: it is behind a feature gate in
// JobSet, off by default, and needs an agent in each Pod.
const (
	Recreate         RestartStrategy = "Recreate"
	BlockingRecreate RestartStrategy = "BlockingRecreate"
	InPlaceRestart   RestartStrategy = "InPlaceRestart"
)

// FailurePolicyAction is what a rule does.
type FailurePolicyAction string

// The actions of rules. The last two restart one Job alone; they are refused,
// being behind a feature gate in JobSet, off by default.
const (
	FailJobSet                        FailurePolicyAction = "FailJobSet"
	RestartJobSet                     FailurePolicyAction = "RestartJobSet"
	RestartJobSetAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobSetAndIgnoreMaxRestarts"
	RestartJob                        FailurePolicyAction = "RestartJob"
	RestartJobAndIgnoreMaxRestarts    FailurePolicyAction = "RestartJobAndIgnoreMaxRestarts"
)

// FailurePolicyRule says what to do about certain failures. All that it names
// must match; what it leaves out matches everything.
type FailurePolicyRule struct {
	// A name, for conditions. Default failurePolicyRule<index>.
	Name string `json:"name,omitempty"`

	// What to do.
	// +kubebuilder:validation:Enum=FailJobSet;RestartJobSet;RestartJobSetAndIgnoreMaxRestarts;RestartJob;RestartJobAndIgnoreMaxRestarts
	Action FailurePolicyAction `json:"action"`

	// The reason of the Job's condition Failed is one of these.
	OnJobFailureReasons []string `json:"onJobFailureReasons,omitempty"`

	// The message of that condition matches one of these regular expressions (RE2).
	OnJobFailureMessagePatterns []string `json:"onJobFailureMessagePatterns,omitempty"`

	// The Job is of one of these replicated jobs.
	// +listType=atomic
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// StartupPolicy says in which order replicated jobs start.
type StartupPolicy struct {
	// AnyOrder, or InOrder: each when those before it are ready.
	// +kubebuilder:validation:Enum=AnyOrder;InOrder
	StartupPolicyOrder StartupPolicyOrder `json:"startupPolicyOrder"`
}

// StartupPolicyOrder is an order of replicated jobs.
type StartupPolicyOrder string

// The orders of a startup policy.
const (
	AnyOrder StartupPolicyOrder = "AnyOrder"
	InOrder  StartupPolicyOrder = "InOrder"
)

// Coordinator names one Pod of the set.
type Coordinator struct {
	// The replicated job.
	ReplicatedJob string `json:"replicatedJob"`

	// Which of its Jobs, from 0.
	JobIndex int `json:"jobIndex,omitempty"`

	// Which of that Job's Pods, from 0.
	PodIndex int `json:"podIndex,omitempty"`
}

// VolumeClaimPolicy is volumes that are made for the set.
type VolumeClaimPolicy struct {
	// Claims. A Pod with a volume mount of a claim's name gets a volume of that
	// name, on the claim <template>-<jobset>.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Templates []ClaimTemplate `json:"templates,omitempty"`

	// What becomes of the claims.
	RetentionPolicy *VolumeRetentionPolicy `json:"retentionPolicy,omitempty"`
}

// ClaimTemplate is a PersistentVolumeClaim in the making.
// +kubebuilder:pruning:PreserveUnknownFields
type ClaimTemplate struct {
	// Its name, labels and annotations.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is claimed.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec corev1.PersistentVolumeClaimSpec `json:"spec,omitempty"`
}

// VolumeRetentionPolicy says what becomes of a set's claims.
type VolumeRetentionPolicy struct {
	// When the set is deleted: Delete, the default, or Retain.
	// +kubebuilder:validation:Enum=Delete;Retain
	// +kubebuilder:default=Delete
	WhenDeleted *RetentionPolicyType `json:"whenDeleted,omitempty"`
}

// RetentionPolicyType says whether something is kept.
type RetentionPolicyType string

// What may become of claims.
const (
	RetentionPolicyDelete RetentionPolicyType = "Delete"
	RetentionPolicyRetain RetentionPolicyType = "Retain"
)

// The types of a set's conditions.
const (
	ConditionCompleted         = "Completed"
	ConditionFailed            = "Failed"
	ConditionSuspended         = "Suspended"
	ConditionRestarting        = "RestartingJobSet"
	ConditionStartupInProgress = "StartupPolicyInProgress"
	ConditionStartupCompleted  = "StartupPolicyCompleted"
)

// JobSetStatus says how a set goes.
// +kubebuilder:pruning:PreserveUnknownFields
type JobSetStatus struct {
	// What the set has come to.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// How often the set was restarted.
	Restarts int32 `json:"restarts"`

	// How many of the restarts count towards maxRestarts.
	RestartsCountTowardsMax int32 `json:"restartsCountTowardsMax,omitempty"`

	// Completed or Failed, at the end.
	TerminalState string `json:"terminalState,omitempty"`

	// The Jobs of each replicated job.
	// +listType=map
	// +listMapKey=name
	ReplicatedJobsStatus []ReplicatedJobStatus `json:"replicatedJobsStatus,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ReplicatedJobStatus counts the Jobs of a replicated job.
type ReplicatedJobStatus struct {
	// The replicated job.
	Name string `json:"name"`

	// Jobs with as many Pods ready or succeeded as they need.
	Ready int32 `json:"ready"`

	// Jobs that have succeeded.
	Succeeded int32 `json:"succeeded"`

	// Jobs that have failed.
	Failed int32 `json:"failed"`

	// Jobs with a Pod that is pending or running.
	Active int32 `json:"active"`

	// Jobs that are suspended.
	Suspended int32 `json:"suspended"`
}
