// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReplicaType is a role of replicas, such as Master or Worker.
type ReplicaType string

// ReplicaSpec specifies how many replicas of a type there are, and what each
// runs.
type ReplicaSpec struct {
	// The number of replicas. Default 1; for an MPIJob's workers 0.
	Replicas *int32 `json:"replicas,omitempty"`

	// The Pod template of each. Its restart policy is replaced by the
	// replica's.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template,omitempty"`

	// What happens when a replica fails: Always, OnFailure, Never or ExitCode.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
}

// RestartPolicy specifies what happens when a replica fails.
type RestartPolicy string

// Always and OnFailure restart it, Never fails the job. ExitCode restarts it for
// exit codes from 128, which mean a signal or a lost machine, and fails the job
// for others.
const (
	RestartAlways     RestartPolicy = "Always"
	RestartOnFailure  RestartPolicy = "OnFailure"
	RestartNever      RestartPolicy = "Never"
	RestartOnExitCode RestartPolicy = "ExitCode"
)

// RestartScope specifies what is restarted when a replica fails.
type RestartScope string

// The scopes of a restart: the failed replica, or all replicas of the job.
const (
	RestartReplica RestartScope = "Replica"
	RestartJob     RestartScope = "Job"
)

// CleanPodPolicy specifies which Pods are deleted when a job ends.
type CleanPodPolicy string

// All Pods, those still running, or none.
const (
	CleanPodsAll     CleanPodPolicy = "All"
	CleanPodsRunning CleanPodPolicy = "Running"
	CleanPodsNone    CleanPodPolicy = "None"
)

// Who may manage a job: this operator, under its name for MPIJobs of v2beta1 or
// for other jobs, or MultiKueue on another cluster.
const (
	ManagedByTrainingOperator = "kubeflow.org/training-operator"
	ManagedByMPIOperator      = "kubeflow.org/mpi-operator"
	ManagedByMultiKueue       = "kueue.x-k8s.io/multikueue"
)

// RunPolicy specifies limits, retries and cleanup of a job.
type RunPolicy struct {
	// Which Pods are deleted when the job ends. Default None.
	CleanPodPolicy *CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// How many seconds after it finishes the job is deleted. Default: never.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// How many seconds the job may run. Default: no limit.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// How many failures of replicas are retried. Default: no limit.
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// What is restarted when a replica fails: Replica, the default, or Job. The
	// replicas of most programs wait for each other, and can only continue
	// together.
	// +kubebuilder:validation:Enum=Replica;Job
	RestartScope RestartScope `json:"restartScope,omitempty"`

	// A checkpoint directory, from which a restarted program resumes.
	// Default: none. Immutable.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`

	// How the job's Pods are scheduled together.
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`

	// Suspends the job: its Pods are deleted.
	// +kubebuilder:default:=false
	Suspend *bool `json:"suspend,omitempty"`

	// Who manages the job: kubeflow.org/training-operator (the default),
	// kubeflow.org/mpi-operator for an MPIJob of v2beta1, or
	// kueue.x-k8s.io/multikueue. Immutable.
	ManagedBy *string `json:"managedBy,omitempty"`
}

// SchedulingPolicy specifies how a job's Pods are scheduled together.
type SchedulingPolicy struct {
	// How many Pods must be scheduled at once. Default: all.
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// The queue that the job waits in.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="spec.runPolicy.schedulingPolicy.queue is immutable"
	Queue string `json:"queue,omitempty"`

	// The resources that must be free. Default: the requests of that many
	// Pods.
	MinResources *map[corev1.ResourceName]resource.Quantity `json:"minResources,omitempty"`

	// The priority class of the group.
	PriorityClass string `json:"priorityClass,omitempty"`

	// How long Pods wait for each other, in seconds.
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// JobStatus is the status of a job.
type JobStatus struct {
	// The job's conditions. The one that changed last is last.
	Conditions []JobCondition `json:"conditions,omitempty"`

	// The number of replicas in each state, by type.
	ReplicaStatuses map[ReplicaType]*ReplicaStatus `json:"replicaStatuses,omitempty"`

	// When the job was started or resumed.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the job ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the status was last written.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// How many failures were retried: by recreating Pods, and within Pods that
	// no longer exist. Restarts by the kubelet within existing Pods are counted
	// in ContainerRestarts.
	Restarts int32 `json:"restarts,omitempty"`

	// How often the kubelet restarted containers of the job's Pods, by Pod name.
	ContainerRestarts map[string]int32 `json:"containerRestarts,omitempty"`

	// The Pods that the job is deleting. Their outcome no longer counts.
	LeavingPods []types.UID `json:"leavingPods,omitempty"`
}

// ReplicaStatus counts the replicas of one type.
type ReplicaStatus struct {
	// Running Pods.
	Active int32 `json:"active,omitempty"`

	// Succeeded Pods.
	Succeeded int32 `json:"succeeded,omitempty"`

	// Failed Pods.
	Failed int32 `json:"failed,omitempty"`

	// The indexes of the replicas that have started and not succeeded, as
	// ranges: "0-2,5". If the Pod of one is gone, it was lost without its end
	// being observed.
	BegunIndexes string `json:"begunIndexes,omitempty"`

	// Deprecated: never set; Selector is.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// The label selector of the Pods, for autoscalers.
	Selector string `json:"selector,omitempty"`
}

// JobCondition is a condition of a job.
type JobCondition struct {
	// Created, Running, Restarting, Succeeded, Suspended or Failed.
	Type JobConditionType `json:"type"`

	// True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// The reason, as one word.
	Reason string `json:"reason,omitempty"`

	// A human-readable explanation.
	Message string `json:"message,omitempty"`

	// When the condition was last updated.
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`

	// When its status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// JobConditionType names a condition.
type JobConditionType string

// The conditions of a job.
const (
	JobCreated    JobConditionType = "Created"
	JobRunning    JobConditionType = "Running"
	JobRestarting JobConditionType = "Restarting"
	JobSucceeded  JobConditionType = "Succeeded"
	JobSuspended  JobConditionType = "Suspended"
	JobFailed     JobConditionType = "Failed"
)

// Labels of a job's Pods and Services.
const (
	LabelOperatorName = "training.kubeflow.org/operator-name"
	LabelJobName      = "training.kubeflow.org/job-name"
	LabelReplicaType  = "training.kubeflow.org/replica-type"
	LabelReplicaIndex = "training.kubeflow.org/replica-index"
	LabelJobRole      = "training.kubeflow.org/job-role"
)
