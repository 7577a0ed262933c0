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

	// What to run.
	Spec MXJobSpec `json:"spec,omitempty"`

	// How far it is.
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

// MXJobSpec says what to run.
type MXJobSpec struct {
	// When the job is given up, and what is cleaned up.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// MXTrain or MXTune.
	JobMode JobMode `json:"jobMode"`

	// The replicas: Scheduler, Server, Worker, or TunerTracker, TunerServer,
	// Tuner.
	MXReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"mxReplicaSpecs"`
}

// JobMode says whether an MXJob trains or tunes.
type JobMode string

// To train a model, or to tune an operator.
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
