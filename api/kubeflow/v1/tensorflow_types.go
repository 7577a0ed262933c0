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

	// What to run.
	Spec TFJobSpec `json:"spec,omitempty"`

	// How far it is.
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

// TFJobSpec says what to run.
type TFJobSpec struct {
	// When the job is given up, and what is cleaned up.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// When the job has succeeded if it has neither chief nor master: by default
	// with worker 0, or with AllWorkers.
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// The replicas: Chief or Master, Worker, PS, Evaluator.
	TFReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"tfReplicaSpecs"`

	// Workers may come and go: each is told of itself and the parameter servers
	// alone, and its failure does not fail the job.
	EnableDynamicWorker bool `json:"enableDynamicWorker,omitempty"`
}

// SuccessPolicy says when a TFJob without chief has succeeded.
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
