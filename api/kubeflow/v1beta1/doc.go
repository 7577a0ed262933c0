// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 has the API types for tuning a program: Experiment, Trial
// and Suggestion of the group kubeflow.org.
//
// An Experiment specifies the search space (parameters), the goal (objective),
// the search algorithm (algorithm), what one run is (trialTemplate), and the
// budget (the trial counts). Its controller maintains one Suggestion of the
// same name, into which the search algorithm writes parameter assignments, and
// creates one Trial per assignment. A Trial owns its run object, usually a
// batch Job, and records the run's metrics.
//
//	Experiment ──owns──▶ Suggestion   (asks for N assignments, gets them)
//	    └──────owns──▶ Trial ──owns──▶ run object (Job, PyTorchJob, …)
//
// Names of fields, conditions, reasons and labels are identical to those of
// Katib's API of the same version, so its manifests and clients work
// unchanged. SetDefaults fills in unset fields, and Validate checks an
// Experiment. Both are pure functions: the admission webhooks call them, and
// so can anything else.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1beta1
