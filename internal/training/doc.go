// SPDX-License-Identifier: Apache-2.0

// Package training is the domain that runs distributed and elastic training: the
// jobs of Kubeflow's training operator, TrainJobs of Kubeflow Trainer, and the
// JobSets that these become.
//
//	PyTorchJob, TFJob, MPIJob, … ──▶ Pods and Services
//	TrainJob + runtime ──▶ JobSet ──▶ Jobs ──▶ Pods
package training
