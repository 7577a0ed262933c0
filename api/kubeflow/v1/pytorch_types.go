// SPDX-License-Identifier: Apache-2.0

package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PyTorchJob trains with PyTorch.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.pytorchReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type PyTorchJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The job's specification.
	Spec PyTorchJobSpec `json:"spec,omitempty"`

	// The job's status.
	Status JobStatus `json:"status,omitempty"`
}

// PyTorchJobList is a list of jobs.
// +kubebuilder:object:root=true
type PyTorchJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobs.
	Items []PyTorchJob `json:"items"`
}

// PyTorchJobSpec specifies a job.
type PyTorchJobSpec struct {
	// Limits, retries and cleanup of the job.
	// +kubebuilder:validation:Optional
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy"`

	// The elastic policy for torchrun. Default: not elastic.
	ElasticPolicy *ElasticPolicy `json:"elasticPolicy,omitempty"`

	// The replicas: Master, Worker.
	PyTorchReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"pytorchReplicaSpecs"`

	// How many processes torchrun starts in each replica: auto, cpu, gpu or a
	// number. Default auto.
	NprocPerNode *string `json:"nprocPerNode,omitempty"`
}

// ElasticPolicy specifies how torchrun lets the number of workers change.
type ElasticPolicy struct {
	// The minimum number of workers. Default: MaxReplicas.
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// The maximum number of workers. Default: MinReplicas.
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// The rendezvous backend: c10d (the default), etcd or etcd-v2.
	RDZVBackend *RDZVBackend `json:"rdzvBackend,omitempty"`

	// The rendezvous port. Default: the container's.
	RDZVPort *int32 `json:"rdzvPort,omitempty"`

	// The rendezvous host. Default: worker 0.
	RDZVHost *string `json:"rdzvHost,omitempty"`

	// The rendezvous ID.
	RDZVID *string `json:"rdzvId,omitempty"`

	// Additional settings of the backend.
	RDZVConf []RDZVConf `json:"rdzvConf,omitempty"`

	// Each replica does a rendezvous with itself only.
	Standalone *bool `json:"standalone,omitempty"`

	// How many processes torchrun starts. Deprecated: use spec.nprocPerNode.
	NProcPerNode *int32 `json:"nProcPerNode,omitempty"`

	// How often torchrun restarts its processes.
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// The metrics of a HorizontalPodAutoscaler for the workers. Default: no
	// autoscaler.
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// RDZVConf is a setting of a rendezvous backend.
type RDZVConf struct {
	// Its name.
	Key string `json:"key,omitempty"`

	// Its value.
	Value string `json:"value,omitempty"`
}

// RDZVBackend names a rendezvous backend of torchrun.
type RDZVBackend string

// BackendC10D is the backend that needs no other service.
const BackendC10D RDZVBackend = "c10d"

// The replica types of PyTorchJobs, XGBoostJobs and PaddleJobs.
const (
	Master ReplicaType = "Master"
	Worker ReplicaType = "Worker"
)
