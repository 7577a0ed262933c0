// SPDX-License-Identifier: Apache-2.0

// Package trainingruntime makes, of a TrainJob and its runtime, the objects that
// do the training.
//
//	runtime's template ─▶ patches of the job ─▶ number of nodes, resources
//	    ─▶ policy of the framework (variables, host file, keys)
//	    ─▶ initializers and trainer of the job ─▶ JobSet
//
// [Render] is a pure function. The runtime says how nodes find each other: each
// has the name <job>-<replicated job>-0-<node>.<job>, and a framework's policy
// writes those names where the framework looks for them. [Validate] says, before
// anything is made, what of a job does not fit its runtime.
package trainingruntime
