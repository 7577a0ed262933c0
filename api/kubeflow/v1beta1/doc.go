// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the kinds that users declare to tune a program:
// Experiment, Trial and Suggestion of the group kubeflow.org.
//
// An Experiment says what may vary (parameters), what is wanted (objective),
// how to search (algorithm), what one run is (trialTemplate), and how much may
// be spent (the trial counts). Its controller keeps one Suggestion of the same
// name, in which the search algorithm writes parameter assignments, and makes
// one Trial of each assignment. A Trial owns its run object, usually a batch
// Job, and holds what the run's metrics came to.
//
//	Experiment ──owns──▶ Suggestion   (asks for N assignments, gets them)
//	    └──────owns──▶ Trial ──owns──▶ run object (Job, PyTorchJob, …)
//
// Names of fields, conditions, reasons and labels equal those of Katib's API
// of the same version, byte for byte, so that its manifests and clients work
// unchanged. What users leave out is filled in by SetDefaults; what they may
// write is decided by a Validator. Both are pure functions: the admission
// webhooks call them, and so can anything else.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1beta1
