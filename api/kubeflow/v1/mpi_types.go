// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MPIJob runs a program by mpirun on several workers.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.conditions[-1:].type`
type MPIJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The job's specification.
	Spec MPIJobSpec `json:"spec,omitempty"`

	// The job's status.
	Status JobStatus `json:"status,omitempty"`
}

// MPIJobList is a list of jobs.
// +kubebuilder:object:root=true
type MPIJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobs.
	Items []MPIJob `json:"items"`
}

// MPIJobSpec specifies a job.
type MPIJobSpec struct {
	// How many processes run on each worker. Default 1.
	SlotsPerWorker *int32 `json:"slotsPerWorker,omitempty"`

	// Deprecated: use RunPolicy's, which takes precedence.
	CleanPodPolicy *CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// The replicas: one Launcher, and Workers.
	MPIReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"mpiReplicaSpecs"`

	// The container of a worker in which processes run. Default: the first.
	MainContainer string `json:"mainContainer,omitempty"`

	// Limits, retries and cleanup of the job.
	// +kubebuilder:default:={}
	RunPolicy RunPolicy `json:"runPolicy,omitempty"`

	// Of v2beta1: the MPI implementation, OpenMPI, Intel or MPICH. If set, the
	// job has that version.
	MPIImplementation MPIImplementation `json:"mpiImplementation,omitempty"`

	// Of v2beta1: where SSH keys are mounted.
	SSHAuthMountPath string `json:"sshAuthMountPath,omitempty"`

	// Of v2beta1: processes run in the launcher too.
	RunLauncherAsWorker *bool `json:"runLauncherAsWorker,omitempty"`

	// Of v2beta1: when the launcher is created.
	LauncherCreationPolicy LauncherCreationPolicy `json:"launcherCreationPolicy,omitempty"`
}

// MPILauncher is the replica type of an MPIJob that runs mpirun; the other is
// Worker.
const MPILauncher ReplicaType = "Launcher"

// MPIImplementation names an implementation of MPI.
type MPIImplementation string

// The supported implementations.
const (
	OpenMPI  MPIImplementation = "OpenMPI"
	IntelMPI MPIImplementation = "Intel"
	MPICH    MPIImplementation = "MPICH"
)

// LauncherCreationPolicy says when the launcher of a job of v2beta1 is created.
type LauncherCreationPolicy string

// With the workers, or when all of them are ready.
const (
	LauncherAtStartup           LauncherCreationPolicy = "AtStartup"
	LauncherWaitForWorkersReady LauncherCreationPolicy = "WaitForWorkersReady"
)

// DefaultSSHAuthMountPath is the default mount path of the keys of a job of
// v2beta1.
const DefaultSSHAuthMountPath = "/root/.ssh"

// IsV2beta1 reports whether the job is of v2beta1: its launcher is a batch
// Job and reaches the workers by ssh.
func (j *MPIJob) IsV2beta1() bool { return j.Spec.MPIImplementation != "" }
