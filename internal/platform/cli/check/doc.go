// SPDX-License-Identifier: Apache-2.0

// Package check finds a manifest's missing prerequisites before anything runs.
//
//	object ─▶ dry run ─▶ unknown kinds and fields, invalid values, rejections
//	   └─▶ the Pods that would come of it ─▶ dry run of each
//	           ├─▶ images, programs, scripts   the decisions of this machine's node (node.Forecast)
//	           ├─▶ Secrets, ConfigMaps, …      in the cluster, or among the objects that are checked
//	           └─▶ CPUs, memory, devices       on the cluster's nodes
//
// Nothing is decided here that something else decides later: the API server says what it would
// reject, and the node what it could not start. The Pods are those that the controllers would
// create: an Experiment's template is rendered with the first value of each parameter, a TrainJob
// with its runtime.
package check
