// SPDX-License-Identifier: Apache-2.0

// Package asktell hands the trials of an experiment to programs outside
// Kubernetes, by gRPC and HTTP, and receives their results.
//
// # The model
//
// An experiment with spec.trialTemplate.external gets its trials like any other,
// parallelTrialCount at a time. A program that asks for one gets a lease, which
// [diwan.dev/diwan/internal/tuning/lease] keeps in the trial's status. Each
// report renews the lease, goes to the observation store, and returns whether
// the trial is worth continuing. When the program completes the trial, or its
// lease expires, the trial's controller does the rest.
//
// # What holds
//
// The server is stateless: leases are in trials, reports in the store. It may be
// killed at any instruction, and several may serve. A trial belongs to one
// program at a time, since leases are written with optimistic concurrency. A
// retried call takes effect once: [Server.Ask] by its request's ID, which
// becomes the lease's name; [Server.Report] by its number, which is an offset in
// the store; [Server.Complete] by the lease.
//
// [Access] authorizes callers: they must be allowed to update trials in the
// namespace.
package asktell
