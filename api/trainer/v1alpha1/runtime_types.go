// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/jobset/v1alpha2"
)

// ClusterTrainingRuntime is a runtime for the TrainJobs of all namespaces.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type ClusterTrainingRuntime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The runtime.
	// +optional
	Spec TrainingRuntimeSpec `json:"spec,omitzero"`
}

// ClusterTrainingRuntimeList is what the API server returns for a list.
// +kubebuilder:object:root=true
type ClusterTrainingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterTrainingRuntime `json:"items"`
}

// TrainingRuntime is a runtime for the TrainJobs of its namespace.
// +kubebuilder:object:root=true
type TrainingRuntime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The runtime.
	// +optional
	Spec TrainingRuntimeSpec `json:"spec,omitzero"`
}

// TrainingRuntimeList is what the API server returns for a list.
// +kubebuilder:object:root=true
type TrainingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrainingRuntime `json:"items"`
}

// TrainingRuntimeSpec is a runtime.
// +kubebuilder:pruning:PreserveUnknownFields
type TrainingRuntimeSpec struct {
	// How nodes find each other.
	MLPolicy *MLPolicy `json:"mlPolicy,omitempty"`

	// The gang scheduler for the nodes.
	PodGroupPolicy *PodGroupPolicy `json:"podGroupPolicy,omitempty"`

	// The JobSet to create for a TrainJob: metadata (labels and annotations) and
	// spec as in jobset.x-k8s.io/v1alpha2.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Template JobSetTemplateSpec `json:"template,omitzero"`
}

// JobSetTemplateSpec is the JobSet to create for a TrainJob.
type JobSetTemplateSpec struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha2.JobSetSpec `json:"spec,omitempty"`
}

// MLPolicy specifies how nodes find each other: at most one of the frameworks.
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost), has(self.flux), has(self.tensorflow)].filter(x, x).size() <= 1", message="Only one of the policy can be configured"
type MLPolicy struct {
	// How many nodes train together. Default 1.
	NumNodes *int32 `json:"numNodes,omitempty"`

	// PyTorch: variables for torchrun.
	Torch *TorchMLPolicySource `json:"torch,omitempty"`

	// MPI: a host file and keys for ssh.
	MPI *MPIMLPolicySource `json:"mpi,omitempty"`

	// Flux. Not supported: TrainJobs with such a runtime are rejected.
	Flux *FluxMLPolicySource `json:"flux,omitempty"`

	// JAX: variables for jax.distributed.
	JAX *JAXMLPolicySource `json:"jax,omitempty"`

	// XGBoost: variables for its tracker.
	XGBoost *XGBoostMLPolicySource `json:"xgboost,omitempty"`

	// TensorFlow: the variable TF_CONFIG. The replicated jobs chief, ps and
	// evaluator are tasks of these types, and the trainer's are the workers. Not
	// in Kubeflow Trainer.
	TensorFlow *TensorFlowMLPolicySource `json:"tensorflow,omitempty"`
}

// TorchMLPolicySource is how PyTorch's nodes find each other.
type TorchMLPolicySource struct {
	// Additional containers that get torchrun's variables.
	EnvInjection *EnvInjection `json:"envInjection,omitempty"`
}

// EnvInjection names containers that get a framework's variables.
type EnvInjection struct {
	// The containers, by replicated job.
	// +listType=map
	// +listMapKey=jobName
	// +kubebuilder:validation:MaxItems=16
	Targets []EnvInjectionTarget `json:"targets,omitempty"`
}

// EnvInjectionTarget names containers of one replicated job.
type EnvInjectionTarget struct {
	// The replicated job.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	JobName string `json:"jobName"`

	// Its containers, except node, which always gets the variables.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ContainerNames []string `json:"containerNames,omitempty"`
}

// MPIMLPolicySource is how mpirun finds the nodes.
type MPIMLPolicySource struct {
	// How many processes run on each node. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`

	// The MPI implementation, which determines the host file: OpenMPI, the
	// default.
	// +kubebuilder:default=OpenMPI
	// +kubebuilder:validation:Enum=OpenMPI;""
	MPIImplementation *MPIImplementation `json:"mpiImplementation,omitempty"`

	// The mount path of the ssh keys. Default /root/.ssh.
	// +kubebuilder:default=/root/.ssh
	// +kubebuilder:validation:MaxLength=4096
	SSHAuthMountPath *string `json:"sshAuthMountPath,omitempty"`

	// Whether processes also run on the launcher, which then is one of the
	// nodes. Default false.
	// +kubebuilder:default=false
	RunLauncherAsNode *bool `json:"runLauncherAsNode,omitempty"`
}

// MPIImplementation is an implementation of MPI.
type MPIImplementation string

// OpenMPI is the implementation whose host files are written.
const OpenMPI MPIImplementation = "OpenMPI"

// FluxMLPolicySource is Flux.
type FluxMLPolicySource struct {
	// How many processes run on each node. Default 1.
	// +kubebuilder:validation:Minimum=1
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`
}

// JAXMLPolicySource is how JAX's processes find each other.
type JAXMLPolicySource struct{}

// XGBoostMLPolicySource is how XGBoost's workers find each other: one per GPU,
// or one per node.
type XGBoostMLPolicySource struct{}

// TensorFlowMLPolicySource is how TensorFlow's tasks find each other.
type TensorFlowMLPolicySource struct{}

// PodGroupPolicy is the gang scheduler for the nodes.
type PodGroupPolicy struct {
	// Coscheduling of the Kubernetes scheduler-plugins.
	Coscheduling *CoschedulingPodGroupPolicySource `json:"coscheduling,omitempty"`

	// Volcano.
	Volcano *VolcanoPodGroupPolicySource `json:"volcano,omitempty"`
}

// CoschedulingPodGroupPolicySource is coscheduling of the scheduler-plugins.
type CoschedulingPodGroupPolicySource struct {
	// How many seconds may pass until all nodes are scheduled. Default 60.
	// +kubebuilder:default=60
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// VolcanoPodGroupPolicySource is gang scheduling by Volcano.
type VolcanoPodGroupPolicySource struct {
	// The network topology constraint, as in Volcano's PodGroup.
	NetworkTopology *VolcanoNetworkTopology `json:"networkTopology,omitempty"`
}

// VolcanoNetworkTopology is the network topology constraint of a group.
type VolcanoNetworkTopology struct {
	// hard, the default, or soft.
	// +kubebuilder:validation:Enum=hard;soft
	Mode string `json:"mode,omitempty"`

	// The highest tier that the group may span.
	HighestTierAllowed *int `json:"highestTierAllowed,omitempty"`
}
