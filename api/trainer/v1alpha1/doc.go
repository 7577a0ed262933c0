// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the group trainer.kubeflow.org, by which
// users declare distributed training.
//
//	TrainJob ──runtimeRef──▶ ClusterTrainingRuntime or TrainingRuntime
//	    └──owns──▶ JobSet ──▶ Jobs ──▶ Pods <job>-<replicated job>-0-<node>-…
//
//	OptimizationJob ──owns──▶ Experiment ──▶ Trials ──▶ TrainJobs
//
// A runtime is written once by whoever knows the framework: a JobSet template
// and a policy by which its nodes find each other. A TrainJob says what is
// trained on it: the program, how many nodes, the data. An OptimizationJob is a
// search for the parameters of a TrainJob.
//
// Names of fields, conditions, reasons, labels and variables equal those of
// Kubeflow Trainer (kubeflow/trainer at 8c0f505, the API of v2.3), so that its
// manifests and clients work unchanged. What is left out is filled in by
// SetDefaults; what may be written is decided by Validate. Both are pure.
//
// +kubebuilder:object:generate=true
// +groupName=trainer.kubeflow.org
package v1alpha1
