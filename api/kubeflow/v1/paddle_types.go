// SPDX-License-Identifier: Apache-2.0

package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PaddleJob trains with PaddlePaddle: collectively with workers alone, or with
// parameter servers, which are the masters.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.paddleReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type PaddleJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to run.
	Spec PaddleJobSpec `json:"spec,omitempty"`

	// How far it is.
	Status JobStatus `json:"status,omitempty"`
}

// PaddleJobList is a list of jobs.
// +kubebuilder:object:root=true
type PaddleJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobs.
	Items []PaddleJob `json:"items"`
}

// PaddleJobSpec says what to run.
type PaddleJobSpec struct {
	// When the job is given up, and what is cleaned up.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// How workers may come and go.
	ElasticPolicy *PaddleElasticPolicy `json:"elasticPolicy,omitempty"`

	// The replicas: Master, Worker.
	PaddleReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"paddleReplicaSpecs"`
}

// PaddleElasticPolicy says how workers may come and go.
type PaddleElasticPolicy struct {
	// With how many workers it goes on at least. Default: MaxReplicas.
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// How many workers it takes at most. Default: MinReplicas.
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// How often Pods are restarted.
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// By what a HorizontalPodAutoscaler changes the number of workers. Default:
	// there is none.
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}
