// SPDX-License-Identifier: Apache-2.0

package v2beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// MPIJob runs a program by mpirun on several workers, which it reaches by ssh.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
type MPIJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The job's specification.
	Spec MPIJobSpec `json:"spec,omitempty"`

	// The job's status.
	Status v1.JobStatus `json:"status,omitempty"`
}

// MPIJobSpec specifies a job.
type MPIJobSpec struct {
	// How many processes run on each worker. Default 1.
	// +kubebuilder:default:=1
	SlotsPerWorker *int32 `json:"slotsPerWorker,omitempty"`

	// Processes run in the launcher too. Default false.
	// +kubebuilder:default:=false
	RunLauncherAsWorker *bool `json:"runLauncherAsWorker,omitempty"`

	// Limits, retries and cleanup of the job.
	// +kubebuilder:default:={}
	RunPolicy v1.RunPolicy `json:"runPolicy,omitempty"`

	// The replicas: one Launcher, and Workers.
	MPIReplicaSpecs map[v1.ReplicaType]*v1.ReplicaSpec `json:"mpiReplicaSpecs"`

	// The directory in which containers find the ssh keys. Default /root/.ssh.
	// +kubebuilder:default:="/root/.ssh"
	SSHAuthMountPath string `json:"sshAuthMountPath,omitempty"`

	// When the launcher is created: AtStartup (the default), with the
	// workers, or WaitForWorkersReady.
	// +kubebuilder:default:=AtStartup
	LauncherCreationPolicy v1.LauncherCreationPolicy `json:"launcherCreationPolicy,omitempty"`

	// The implementation of MPI: OpenMPI, the default, Intel or MPICH.
	// +kubebuilder:validation:Enum:=OpenMPI;Intel;MPICH
	// +kubebuilder:default:=OpenMPI
	MPIImplementation v1.MPIImplementation `json:"mpiImplementation,omitempty"`

	// Of v1: use RunPolicy's, which takes precedence.
	CleanPodPolicy *v1.CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// Of v1: the container of a worker in which processes run.
	MainContainer string `json:"mainContainer,omitempty"`
}
