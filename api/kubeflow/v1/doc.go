// SPDX-License-Identifier: Apache-2.0

// Package v1 has the API types for distributed training: TFJob, PyTorchJob,
// MPIJob, XGBoostJob, PaddleJob, JAXJob and MXJob of the group kubeflow.org.
//
// All kinds have the same structure. A job has replicas of several types (Master,
// Worker, …), each type with a number and a Pod template; a RunPolicy has limits
// and cleanup; the status counts replicas and has conditions. The differences are
// in [Traits] and in a few fields.
//
//	Job ─▶ replica type ─▶ replica 0, 1, … ─▶ a Pod and a Service of one name
//
// Names of fields, conditions, reasons and labels are identical to those of
// Kubeflow's training operator. Fields that it does not have are optional:
// RunPolicy.RestartScope and Checkpoint, JobStatus.Restarts, ContainerRestarts and
// LeavingPods, and ReplicaStatus.BegunIndexes.
//
// [SetDefaults] fills in unset fields, in memory only: the stored object stays as
// it was written. [Validate] and [ValidateUpdate] decide what may be written. All
// are pure functions.
//
// The MPIJob of v2beta1 is in another package and stored as this package's: an
// MPIJob with an MPI implementation has that version.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1
