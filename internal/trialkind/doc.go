// SPDX-License-Identifier: Apache-2.0

// Package trialkind says which kinds a trial's run object may have.
//
// These are the kinds that Diwan knows, and those that the ConfigMap
// katib-config names as in Katib:
//
//	init:
//	  controller:
//	    trialResources:
//	      - Workflow.v1alpha1.argoproj.io
//
// Whoever may write an Experiment has the operator create objects of these
// kinds in the experiment's namespace. That is why there is a list, and why
// only who may write that ConfigMap makes it longer.
package trialkind
