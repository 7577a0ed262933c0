// SPDX-License-Identifier: Apache-2.0

// Package trialkind decides which kinds a trial's run object may have.
//
// These are the kinds that the domains declare as usable in trials (the kinds.go of
// each), and those listed in the ConfigMap katib-config, as in Katib:
//
//	init:
//	  controller:
//	    trialResources:
//	      - Workflow.v1alpha1.argoproj.io
//
// Anyone who may create an Experiment makes the operator create objects of these
// kinds in the experiment's namespace. That is why there is a list, why only those
// who may write that ConfigMap can extend it, and why kinds that grant permissions
// cannot be on it.
package trialkind
