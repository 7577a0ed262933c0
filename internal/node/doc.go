// SPDX-License-Identifier: Apache-2.0

// Package node is a Kubernetes node that runs Pods as processes of this
// machine. To the control plane it is a kubelet: it registers a Node, renews
// its Lease, takes the Pods that are bound to it and reports their status.
//
// # Model
//
// Each Pod has one worker, which turns in a circle: look at the Pod and at its
// containers, decide, act, wait for something to change. Deciding is the pure
// function decide: from a Pod, what is known of its containers and the time,
// to what should be done and the status to report. Everything that kubelet's
// documents promise about phases, conditions, restarts, init containers,
// sidecars, deadlines and deletion is in that function and its tables.
//
// # What survives
//
// Containers do not depend on this process. Their output goes straight to a
// file, their exit code is kept by a small shell, and what runs is told by file
// locks (package process). A node that is killed at any instruction is followed
// by one that adopts what runs, reports what ended meanwhile, and starts again
// what was interrupted. A container is never run twice at a time, and one that
// ended by itself is never run again unless its restart policy says so.
//
// On an orderly stop containers are ended and marked as interrupted; they run
// again from the start when the node comes back. The Pod's status does not
// change by that, so no Job counts a failure.
//
// # Cost
//
// A write to the API server costs about as much as starting a process, so a
// Pod that ends quickly is reported with a single write: the worker holds the
// status Running back for [Config.StatusHold].
package node
