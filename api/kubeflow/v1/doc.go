// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the kinds that users declare to train a model on several
// machines: TFJob, PyTorchJob, MPIJob, XGBoostJob, PaddleJob, JAXJob and MXJob
// of the group kubeflow.org.
//
// All kinds have one form. A job has replicas of several types (Master, Worker,
// …), each type a number and a Pod template; a RunPolicy says when the job is
// given up and what is cleaned up; the status counts replicas and has
// conditions. What differs is in [Traits] and in few fields.
//
//	Job ─▶ replica type ─▶ replica 0, 1, … ─▶ a Pod and a Service of one name
//
// Names of fields, conditions, reasons and labels equal those of Kubeflow's
// training operator, byte for byte. What it does not have are optional fields:
// RunPolicy.RestartScope and Checkpoint, JobStatus.Restarts, ContainerRestarts and
// LeavingPods, and ReplicaStatus.BegunIndexes.
//
// [SetDefaults] fills in what users leave out, in memory alone: the stored
// object stays as it was written. [Validate] and [ValidateUpdate] say what may
// be written. All are pure functions.
//
// MPIJob of v2beta1 is another package's kind, stored as this package's: an
// MPIJob that names an MPI implementation is of that version.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1
