// SPDX-License-Identifier: Apache-2.0

// Package v2beta1 holds MPIJob as Kubeflow's MPI operator has it, beside that of
// v1, which is the training operator's.
//
//	written as v2beta1 ─▶ mpiImplementation has its default ─▶ stored as v1
//	written as v1      ─▶ mpiImplementation is not there    ─▶ stored as v1
//
// Both versions have the same fields, so that the API server converts one into
// the other by the name of the version alone, and nothing is lost. They differ
// in their defaults, of which one tells for ever in which version a job was
// written: jobs with spec.mpiImplementation are run as the MPI operator does,
// others as the training operator does.
//
// This package is for the CRD. Programs use package v1, to which defaults and
// rules of both versions belong.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v2beta1
