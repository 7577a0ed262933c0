// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// XGBoostJob trains with XGBoost or LightGBM.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type XGBoostJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The job's specification.
	Spec XGBoostJobSpec `json:"spec,omitempty"`

	// The job's status.
	Status JobStatus `json:"status,omitempty"`
}

// XGBoostJobList is a list of jobs.
// +kubebuilder:object:root=true
type XGBoostJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobs.
	Items []XGBoostJob `json:"items"`
}

// XGBoostJobSpec specifies a job.
type XGBoostJobSpec struct {
	// Limits, retries and cleanup of the job.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// The replicas: one Master, and Workers.
	XGBReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"xgbReplicaSpecs"`
}
