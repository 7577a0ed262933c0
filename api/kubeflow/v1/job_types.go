// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReplicaType names a part that replicas play, such as Master or Worker.
type ReplicaType string

// ReplicaSpec says how many replicas of a type there are, and what each runs.
type ReplicaSpec struct {
	// How many. Default 1; of an MPIJob's workers 0.
	Replicas *int32 `json:"replicas,omitempty"`

	// The Pod of each. Its restart policy is replaced by the replica's.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template,omitempty"`

	// What happens when a replica fails: Always, OnFailure, Never or ExitCode.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
}

// RestartPolicy says what happens when a replica fails.
type RestartPolicy string

// Always and OnFailure restart it, Never fails the job. ExitCode restarts it for
// codes from 128 on, which mean a signal or a lost machine, and fails the job
// for others.
const (
	RestartAlways     RestartPolicy = "Always"
	RestartOnFailure  RestartPolicy = "OnFailure"
	RestartNever      RestartPolicy = "Never"
	RestartOnExitCode RestartPolicy = "ExitCode"
)

// RestartScope says what is restarted when a replica failed.
type RestartScope string

// The scopes of a restart: the replica that failed, or all of the job's.
const (
	RestartReplica RestartScope = "Replica"
	RestartJob     RestartScope = "Job"
)

// CleanPodPolicy says which Pods are deleted when a job ends.
type CleanPodPolicy string

// All Pods, those that still run, or none.
const (
	CleanPodsAll     CleanPodPolicy = "All"
	CleanPodsRunning CleanPodPolicy = "Running"
	CleanPodsNone    CleanPodPolicy = "None"
)

// Who may manage a job: this operator, by its name for MPIJobs of v2beta1 or for
// other jobs, or MultiKueue on another cluster.
const (
	ManagedByTrainingOperator = "kubeflow.org/training-operator"
	ManagedByMPIOperator      = "kubeflow.org/mpi-operator"
	ManagedByMultiKueue       = "kueue.x-k8s.io/multikueue"
)

// RunPolicy says when a job is given up, and what is cleaned up.
type RunPolicy struct {
	// Which Pods are deleted when the job ends. Default None.
	CleanPodPolicy *CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// How long after its end the job is deleted, in seconds. Default: never.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// How long the job may take, in seconds from its start. Default: no limit.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// How many failures of replicas are retried. Default: no limit.
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// What is restarted when a replica failed: Replica, the default, or Job. The
	// replicas of most programs wait for each other, and go on only together.
	// +kubebuilder:validation:Enum=Replica;Job
	RestartScope RestartScope `json:"restartScope,omitempty"`

	// A directory of the job's own, from which a program goes on when it is
	// restarted. Default: none. Cannot be changed.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`

	// How the job's Pods are scheduled together.
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`

	// Do not run: a job that runs loses its Pods.
	// +kubebuilder:default:=false
	Suspend *bool `json:"suspend,omitempty"`

	// Who manages the job: kubeflow.org/training-operator, the default, of an
	// MPIJob of v2beta1 kubeflow.org/mpi-operator, or kueue.x-k8s.io/multikueue.
	// Cannot be changed.
	ManagedBy *string `json:"managedBy,omitempty"`
}

// SchedulingPolicy says how a job's Pods are scheduled together.
type SchedulingPolicy struct {
	// How many Pods must fit at once. Default: all.
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// The queue that the job waits in.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf", message="spec.runPolicy.schedulingPolicy.queue is immutable"
	Queue string `json:"queue,omitempty"`

	// What must be free. Default: what that many Pods ask for.
	MinResources *map[corev1.ResourceName]resource.Quantity `json:"minResources,omitempty"`

	// The priority class of the whole.
	PriorityClass string `json:"priorityClass,omitempty"`

	// How long Pods wait for each other, in seconds.
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// JobStatus says how far a job is.
type JobStatus struct {
	// What holds of the job. The one that changed last is last.
	Conditions []JobCondition `json:"conditions,omitempty"`

	// How many replicas of each type there are in each state.
	ReplicaStatuses map[ReplicaType]*ReplicaStatus `json:"replicaStatuses,omitempty"`

	// When the job was begun, or resumed.
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// When the job ended.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// When the status was last written.
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// How many failures were retried: by making Pods anew, and within Pods that
	// are no more. What the kubelet restarted within those that are still there
	// comes on top: ContainerRestarts.
	Restarts int32 `json:"restarts,omitempty"`

	// How often the kubelet restarted containers of the job's Pods, by the names
	// of those Pods in which it did.
	ContainerRestarts map[string]int32 `json:"containerRestarts,omitempty"`

	// The Pods that the job is getting rid of. What becomes of them no longer
	// counts.
	LeavingPods []types.UID `json:"leavingPods,omitempty"`
}

// ReplicaStatus counts the replicas of one type.
type ReplicaStatus struct {
	// Pods that run.
	Active int32 `json:"active,omitempty"`

	// Pods that succeeded.
	Succeeded int32 `json:"succeeded,omitempty"`

	// Pods that failed.
	Failed int32 `json:"failed,omitempty"`

	// The indices of the replicas that have begun and not succeeded, as ranges:
	// "0-2,5". One of these whose Pod is gone was lost: nobody saw its end.
	BegunIndexes string `json:"begunIndexes,omitempty"`

	// Deprecated: never set; Selector is.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// The Pods as a label query, for autoscalers.
	Selector string `json:"selector,omitempty"`
}

// JobCondition is something that holds of a job, or does not.
type JobCondition struct {
	// Created, Running, Restarting, Succeeded, Suspended or Failed.
	Type JobConditionType `json:"type"`

	// True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// Why, as one word.
	Reason string `json:"reason,omitempty"`

	// Why, for people.
	Message string `json:"message,omitempty"`

	// When the condition was last written.
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
