// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the kinds of the group trainer.kubeflow.org for
// distributed training.
//
//	TrainJob ──runtimeRef──▶ ClusterTrainingRuntime or TrainingRuntime
//	    └──owns──▶ JobSet ──▶ Jobs ──▶ Pods <job>-<replicated job>-0-<node>-…
//
//	OptimizationJob ──owns──▶ Experiment ──▶ Trials ──▶ TrainJobs
//
// A runtime is written once, for a framework: a JobSet template and a policy by
// which its nodes find each other. A TrainJob specifies what to train on it:
// the program, the number of nodes, the data. An OptimizationJob searches for
// the parameters of a TrainJob.
//
// Names of fields, conditions, reasons, labels and variables are identical to
// those of Kubeflow Trainer (kubeflow/trainer at 8c0f505, the API of v2.3), so
// its manifests and clients work unchanged. SetDefaults fills in unset fields;
// Validate checks objects. Both are pure.
//
// +kubebuilder:object:generate=true
// +groupName=trainer.kubeflow.org
package v1alpha1
