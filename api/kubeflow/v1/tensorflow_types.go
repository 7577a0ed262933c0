// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TFJob trains with TensorFlow.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type TFJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The job's specification.
	Spec TFJobSpec `json:"spec,omitempty"`

	// The job's status.
	Status JobStatus `json:"status,omitempty"`
}

// TFJobList is a list of jobs.
// +kubebuilder:object:root=true
type TFJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobs.
	Items []TFJob `json:"items"`
}

// TFJobSpec specifies a job.
type TFJobSpec struct {
	// Limits, retries and cleanup of the job.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// When a job with neither chief nor master has succeeded: with worker 0
	// (the default), or AllWorkers.
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// The replicas: Chief or Master, Worker, PS, Evaluator.
	TFReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"tfReplicaSpecs"`

	// Whether workers may come and go: each knows only itself and the parameter
	// servers, and its failure does not fail the job.
	EnableDynamicWorker bool `json:"enableDynamicWorker,omitempty"`
}

// SuccessPolicy specifies when a TFJob without chief has succeeded.
type SuccessPolicy string

// With worker 0, or with all workers.
const (
	SuccessDefault    SuccessPolicy = ""
	SuccessAllWorkers SuccessPolicy = "AllWorkers"
)

// The replica types of TFJobs. Chief and Master are the same.
const (
	TFPS        ReplicaType = "PS"
	TFWorker    ReplicaType = "Worker"
	TFChief     ReplicaType = "Chief"
	TFMaster    ReplicaType = "Master"
	TFEvaluator ReplicaType = "Evaluator"
)
