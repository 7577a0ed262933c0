// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MXJob trains with MXNet, or tunes with TVM.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type MXJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The job's specification.
	Spec MXJobSpec `json:"spec,omitempty"`

	// The job's status.
	Status JobStatus `json:"status,omitempty"`
}

// MXJobList is a list of jobs.
// +kubebuilder:object:root=true
type MXJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobs.
	Items []MXJob `json:"items"`
}

// MXJobSpec specifies a job.
type MXJobSpec struct {
	// Limits, retries and cleanup of the job.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// MXTrain or MXTune.
	JobMode JobMode `json:"jobMode"`

	// The replicas: Scheduler, Server, Worker, or TunerTracker, TunerServer,
	// Tuner.
	MXReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"mxReplicaSpecs"`
}

// JobMode is whether an MXJob trains or tunes.
type JobMode string

// Train a model, or tune an operator.
const (
	MXTrain JobMode = "MXTrain"
	MXTune  JobMode = "MXTune"
)

// The replica types of MXJobs.
const (
	MXScheduler    ReplicaType = "Scheduler"
	MXServer       ReplicaType = "Server"
	MXWorker       ReplicaType = "Worker"
	MXTunerTracker ReplicaType = "TunerTracker"
	MXTunerServer  ReplicaType = "TunerServer"
	MXTuner        ReplicaType = "Tuner"
)
