// SPDX-License-Identifier: Apache-2.0

// Package node is a Kubernetes node that runs Pods as processes on this
// machine. To the control plane it is a kubelet: it registers a Node, renews
// its Lease, runs the Pods that are bound to it and reports their status.
//
// # Model
//
// Each Pod has one worker with a control loop: observe the Pod and its
// containers, decide, act, wait for a change. Deciding is the pure function
// decide: from a Pod, the observed containers and the time, to actions and the
// status to report. Everything that kubelet documents about phases, conditions,
// restarts, init containers, sidecars, deadlines and deletion is in that
// function and its table tests.
//
// # What survives
//
// Containers do not depend on this process. Their output goes straight to a
// file, a small shell records their exit code, and file locks show what is
// running (package process). If a node is killed at any instruction, its
// successor adopts running containers, reports those that ended in the
// meantime, and restarts interrupted ones. A container never runs twice at the
// same time, and one that exited by itself is never run again unless its
// restart policy says so.
//
// On an orderly shutdown containers are terminated and marked as interrupted;
// they run again from the start when the node comes back. This does not change
// the Pod's status, so no Job counts a failure.
//
// # Cost
//
// A write to the API server costs about as much as starting a process, so a Pod
// that ends quickly is reported with a single write: the worker delays the
// status Running by [Config.StatusHold].
package node
