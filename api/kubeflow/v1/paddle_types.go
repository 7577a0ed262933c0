// SPDX-License-Identifier: Apache-2.0

package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PaddleJob trains with PaddlePaddle: collectively with workers only, or with parameter servers, which are the masters.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.paddleReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type PaddleJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The job's specification.
	Spec PaddleJobSpec `json:"spec,omitempty"`

	// The job's status.
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

// PaddleJobSpec specifies a job.
type PaddleJobSpec struct {
	// Limits, retries and cleanup of the job.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// The elastic policy.
	ElasticPolicy *PaddleElasticPolicy `json:"elasticPolicy,omitempty"`

	// The replicas: Master, Worker.
	PaddleReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"paddleReplicaSpecs"`
}

// PaddleElasticPolicy specifies how the number of workers may change.
type PaddleElasticPolicy struct {
	// The minimum number of workers. Default: MaxReplicas.
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// The maximum number of workers. Default: MinReplicas.
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// How often Pods are restarted.
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// The metrics of a HorizontalPodAutoscaler for the workers. Default: no
	// autoscaler.
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}
