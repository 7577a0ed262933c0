// SPDX-License-Identifier: Apache-2.0

// Package trainingruntime renders a TrainJob and its runtime to the objects that
// do the training.
//
//	runtime's template ─▶ patches of the job ─▶ number of nodes, resources
//	    ─▶ policy of the framework (variables, host file, keys)
//	    ─▶ initializers and trainer of the job ─▶ JobSet
//
// [Render] is a pure function. The runtime determines how nodes find each other:
// each has the name <job>-<replicated job>-0-<node>.<job>, and a framework's
// policy puts those names where the framework expects them. [Validate] checks a
// job against its runtime before anything is created.
package trainingruntime
