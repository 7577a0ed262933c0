// SPDX-License-Identifier: Apache-2.0

// Package v2beta1 has the MPIJob of Kubeflow's MPI operator, beside that of v1,
// which is the training operator's.
//
//	written as v2beta1 ─▶ mpiImplementation has its default ─▶ stored as v1
//	written as v1      ─▶ mpiImplementation is not there    ─▶ stored as v1
//
// Both versions have the same fields, so the API server converts between them by
// changing only the version, without loss. They differ in their defaults, one of
// which identifies the version in which a job was written: jobs with
// spec.mpiImplementation are run like the MPI operator's, others like the
// training operator's.
//
// This package is for the CRD. Programs use package v1, which has the defaults
// and rules of both versions.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v2beta1
