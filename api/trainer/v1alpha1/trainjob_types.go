// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TrainJob is a training job on a runtime.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrainJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to train, and where.
	// +optional
	Spec TrainJobSpec `json:"spec,omitzero"`

	// Its status.
	// +optional
	Status TrainJobStatus `json:"status,omitzero"`
}

// TrainJobList is what the API server returns for a list of TrainJobs.
// +kubebuilder:object:root=true
type TrainJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrainJob `json:"items"`
}

// TrainJobSpec specifies what to train, and where.
// +kubebuilder:pruning:PreserveUnknownFields
type TrainJobSpec struct {
	// The runtime. Immutable.
	// +required
	RuntimeRef RuntimeRef `json:"runtimeRef,omitzero"`

	// What to fetch before the training. Immutable.
	Initializer *Initializer `json:"initializer,omitempty"`

	// The training itself. Immutable.
	Trainer *Trainer `json:"trainer,omitempty"`

	// A checkpoint directory, from which a restarted program resumes.
	// Default: none. Immutable.
	Checkpoint *kubeflowv1.Checkpoint `json:"checkpoint,omitempty"`

	// Patches of the runtime for this job only, by manager. Can be changed
	// only while the job is suspended.
	// +listType=map
	// +listMapKey=manager
	// +kubebuilder:validation:MaxItems=16
	RuntimePatches []RuntimePatch `json:"runtimePatches,omitempty"`

	// Suspends the job: no Pod runs while this is true. Default false.
	Suspend *bool `json:"suspend,omitempty"`

	// For how many seconds the job may run, from when it was created or resumed;
	// then it fails with the reason DeadlineExceeded. Immutable.
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds int64 `json:"activeDeadlineSeconds,omitempty"`

	// The controller that manages the job:
	// trainer.kubeflow.org/trainjob-controller (the default) or
	// kueue.x-k8s.io/multikueue. Immutable.
	ManagedBy *string `json:"managedBy,omitempty"`
}

// RuntimeRef names a runtime.
type RuntimeRef struct {
	// The runtime's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Its group. Default trainer.kubeflow.org.
	APIGroup *string `json:"apiGroup,omitempty"`

	// Its kind: ClusterTrainingRuntime (the default) or TrainingRuntime, which is
	// in the job's namespace.
	Kind *string `json:"kind,omitempty"`
}

// Initializer is what to fetch before the training.
type Initializer struct {
	// The data.
	Dataset *Asset `json:"dataset,omitempty"`

	// The model to start from.
	Model *Asset `json:"model,omitempty"`
}

// Asset is data or a model to fetch.
type Asset struct {
	// Its URI: hf://, s3://, file:// or oci://. Default: the runtime's.
	// +kubebuilder:validation:MaxLength=2048
	StorageURI *string `json:"storageUri,omitempty"`

	// Variables of the initializer container, overriding those of the
	// runtime.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Env []corev1.EnvVar `json:"env,omitempty"`

	// A Secret in the job's namespace whose keys become variables of that
	// container.
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`
}

// Trainer is the training itself. Unset fields are the runtime's.
type Trainer struct {
	// The image of the training container.
	// +kubebuilder:validation:MaxLength=500
	Image *string `json:"image,omitempty"`

	// Its entrypoint.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Command []string `json:"command,omitempty"`

	// The entrypoint's arguments.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Args []string `json:"args,omitempty"`

	// Variables, overriding those of the runtime.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Env []corev1.EnvVar `json:"env,omitempty"`

	// How many nodes train together.
	// +kubebuilder:validation:Minimum=0
	NumNodes *int32 `json:"numNodes,omitempty"`

	// The resources of each node, overriding those of the runtime.
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`

	// How many processes run on each node: with MPI its slots, with PyTorch those
	// that torchrun starts, by default "auto".
	// +kubebuilder:validation:Minimum=1
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`
}

// RuntimePatch is one manager's patch of the runtime.
type RuntimePatch struct {
	// The manager: a name with a domain, such as kueue.x-k8s.io/manager.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Manager string `json:"manager"`

	// When this patch was last written. Set by admission.
	Time *metav1.Time `json:"time,omitempty"`

	// The patch: template.metadata (labels and annotations) and
	// template.spec.replicatedJobs, by name, with the fields of Pods that may be
	// patched.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	TrainingRuntimeSpec *TrainingRuntimeSpecPatch `json:"trainingRuntimeSpec,omitempty"`
}

// TrainJobStatus is the status of a job.
// +kubebuilder:pruning:PreserveUnknownFields
type TrainJobStatus struct {
	// The job's conditions: Suspended, Complete or Failed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The Jobs of each replicated job.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	JobsStatus []JobStatus `json:"jobsStatus,omitempty"`

	// The progress that the training reported.
	TrainerStatus *TrainerStatus `json:"trainerStatus,omitempty"`
}

// JobStatus counts the Jobs of a replicated job.
type JobStatus struct {
	// The replicated job.
	Name string `json:"name"`

	// Jobs with as many Pods ready or succeeded as they need.
	Ready *int32 `json:"ready,omitempty"`

	// Jobs that have succeeded.
	Succeeded *int32 `json:"succeeded,omitempty"`

	// Jobs that have failed.
	Failed *int32 `json:"failed,omitempty"`

	// Jobs with a Pod that is pending or running.
	Active *int32 `json:"active,omitempty"`

	// Jobs that are suspended.
	Suspended *int32 `json:"suspended,omitempty"`
}

// TrainerStatus is the progress that a training reported.
// +kubebuilder:validation:XValidation:rule="has(self.lastUpdatedTime)",message="lastUpdatedTime is required when trainerStatus is present"
type TrainerStatus struct {
	// The progress, in percent.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ProgressPercentage *int32 `json:"progressPercentage,omitempty"`

	// The estimated remaining seconds.
	// +kubebuilder:validation:Minimum=0
	EstimatedRemainingSeconds *int32 `json:"estimatedRemainingSeconds,omitempty"`

	// The model's metrics.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Metrics []Metric `json:"metrics,omitempty"`

	// When it was reported.
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime,omitempty"`
}

// UpdateTrainJobStatusRequest reports a training's progress.
type UpdateTrainJobStatusRequest struct {
	// The progress; without it nothing changes.
	TrainerStatus *TrainerStatus `json:"trainerStatus,omitempty"`
}

// Metric is a metric of a model.
type Metric struct {
	// Its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// Its value, as a string.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Value string `json:"value,omitempty"`
}
