// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobSet is several batch Jobs managed as a unit.
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

	// The set's specification.
	Spec JobSetSpec `json:"spec,omitempty"`

	// The set's status.
	Status JobSetStatus `json:"status,omitempty"`
}

// JobSetList is what the API server returns for a list of JobSets.
// +kubebuilder:object:root=true
type JobSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []JobSet `json:"items"`
}

// JobSetSpec specifies a set.
// +kubebuilder:pruning:PreserveUnknownFields
type JobSetSpec struct {
	// The templates of the set's Jobs.
	// +listType=map
	// +listMapKey=name
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// How Pods reach each other. Immutable.
	Network *Network `json:"network,omitempty"`

	// When the set has succeeded: by default, when all its Jobs have.
	// Immutable.
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// What happens when a Job fails: without a policy, the set fails.
	// Immutable.
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// The order in which replicated jobs start. Superseded by dependsOn, and
	// cannot be combined with it. Immutable.
	StartupPolicy *StartupPolicy `json:"startupPolicy,omitempty"`

	// Suspends the set: no Pod runs while this is true.
	Suspend *bool `json:"suspend,omitempty"`

	// The Pod whose host name all Jobs and Pods have as a label.
	Coordinator *Coordinator `json:"coordinator,omitempty"`

	// The controller that manages the set, if not the built-in one. Immutable.
	ManagedBy *string `json:"managedBy,omitempty"`

	// For how many seconds the set is kept after it finishes. Forever if
	// empty.
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Volumes that are created for the set. Immutable.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	VolumeClaimPolicies []VolumeClaimPolicy `json:"volumeClaimPolicies,omitempty"`
}

// ReplicatedJob is a template of Jobs.
// +kubebuilder:pruning:PreserveUnknownFields
type ReplicatedJob struct {
	// The name, which is part of its Jobs' names.
	Name string `json:"name"`

	// A group of replicated jobs, in which Jobs are numbered consecutively.
	// Default "default".
	// +kubebuilder:default=default
	GroupName string `json:"groupName,omitempty"`

	// The Job: metadata and spec as in batch/v1. Its Pod template can be
	// changed while the set is suspended.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template batchv1.JobTemplateSpec `json:"template"`

	// How many Jobs are created from the template. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// The states that other replicated jobs, all earlier in the list, must
	// reach before the Jobs of this one are created. Immutable.
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=name
	DependsOn []DependsOn `json:"dependsOn,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// DependsOn is a state that another replicated job must reach.
type DependsOn struct {
	// The other replicated job.
	Name string `json:"name"`

	// Ready: all its Jobs have the Pods that they need; Complete: all have
	// succeeded.
	// +kubebuilder:validation:Enum=Ready;Complete
	Status DependsOnStatus `json:"status"`
}

// DependsOnStatus is a state that a replicated job must reach.
type DependsOnStatus string

// The states that a replicated job can wait for.
const (
	DependencyReady    DependsOnStatus = "Ready"
	DependencyComplete DependsOnStatus = "Complete"
)

// Network specifies how the set's Pods reach each other.
type Network struct {
	// Whether Pods have the names <job>-<pod index>.<subdomain>. Default
	// true.
	EnableDNSHostnames *bool `json:"enableDNSHostnames,omitempty"`

	// The name of the Service. Default: the set's.
	Subdomain string `json:"subdomain,omitempty"`

	// Whether names also resolve to Pods that are not ready. Default true.
	PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses,omitempty"`
}

// Operator specifies how many of the Jobs in a policy must succeed.
type Operator string

// The operators of a success policy.
const (
	OperatorAll Operator = "All"
	OperatorAny Operator = "Any"
)

// SuccessPolicy specifies when a set has succeeded.
type SuccessPolicy struct {
	// All or Any of the Jobs.
	// +kubebuilder:validation:Enum=All;Any
	Operator Operator `json:"operator"`

	// The replicated jobs that count. Default: all.
	// +listType=atomic
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// FailurePolicy specifies what happens when a Job fails.
type FailurePolicy struct {
	// The maximum number of restarts of the set.
	MaxRestarts int32 `json:"maxRestarts,omitempty"`

	// Recreate recreates each Job as soon as its predecessor is gone;
	// BlockingRecreate waits until all are gone.
	// +kubebuilder:default=Recreate
	// +kubebuilder:validation:Enum=Recreate;BlockingRecreate;InPlaceRestart
	RestartStrategy RestartStrategy `json:"restartStrategy,omitempty"`

	// Rules for certain failures; the first match applies. Without a match,
	// the set is restarted.
	Rules []FailurePolicyRule `json:"rules,omitempty"`
}

// RestartStrategy specifies how a set is restarted.
type RestartStrategy string

// The restart strategies. InPlaceRestart is rejected: it is behind a feature
// gate in JobSet, off by default, and needs an agent in each Pod.
const (
	Recreate         RestartStrategy = "Recreate"
	BlockingRecreate RestartStrategy = "BlockingRecreate"
	InPlaceRestart   RestartStrategy = "InPlaceRestart"
)

// FailurePolicyAction is what a rule does.
type FailurePolicyAction string

// The actions of rules. The last two restart a single Job; they are rejected,
// because they are behind a feature gate in JobSet, off by default.
const (
	FailJobSet                        FailurePolicyAction = "FailJobSet"
	RestartJobSet                     FailurePolicyAction = "RestartJobSet"
	RestartJobSetAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobSetAndIgnoreMaxRestarts"
	RestartJob                        FailurePolicyAction = "RestartJob"
	RestartJobAndIgnoreMaxRestarts    FailurePolicyAction = "RestartJobAndIgnoreMaxRestarts"
)

// FailurePolicyRule specifies the action for certain failures. All set fields
// must match; unset fields match everything.
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

// StartupPolicy specifies the order in which replicated jobs start.
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

// VolumeClaimPolicy specifies volumes that are created for the set.
type VolumeClaimPolicy struct {
	// The claims. A Pod with a volume mount named like a claim gets a volume of
	// that name, from the claim <template>-<jobset>.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Templates []ClaimTemplate `json:"templates,omitempty"`

	// What happens to the claims.
	RetentionPolicy *VolumeRetentionPolicy `json:"retentionPolicy,omitempty"`
}

// ClaimTemplate is a template of a PersistentVolumeClaim.
// +kubebuilder:pruning:PreserveUnknownFields
type ClaimTemplate struct {
	// Its name, labels and annotations.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The claim's spec.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec corev1.PersistentVolumeClaimSpec `json:"spec,omitempty"`
}

// VolumeRetentionPolicy specifies what happens to a set's claims.
type VolumeRetentionPolicy struct {
	// When the set is deleted: Delete, the default, or Retain.
	// +kubebuilder:validation:Enum=Delete;Retain
	// +kubebuilder:default=Delete
	WhenDeleted *RetentionPolicyType `json:"whenDeleted,omitempty"`
}

// RetentionPolicyType specifies whether claims are kept.
type RetentionPolicyType string

// The retention policies of claims.
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

// JobSetStatus is the status of a set.
// +kubebuilder:pruning:PreserveUnknownFields
type JobSetStatus struct {
	// The set's conditions.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// How often the set was restarted.
	Restarts int32 `json:"restarts"`

	// How many of the restarts count toward maxRestarts.
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
