// SPDX-License-Identifier: Apache-2.0

// Package asktell hands the trials of an experiment to programs that Kubernetes
// does not run, by gRPC and by HTTP, and takes what they tell.
//
// # The model
//
// An experiment whose spec.trialTemplate.external is set gets its trials as any
// other does, parallelTrialCount of them at a time. A program asks for one: it
// gets a lease of it, which [diwan.dev/diwan/internal/lease] keeps in the
// trial's status. Each report renews the lease, goes to the observation store,
// and is answered with whether the trial is worth going on. When the program
// tells how it went, or goes silent, the trial's controller does the rest.
//
// # What holds
//
// The server keeps nothing that it cannot read again: leases are in trials,
// reports in the store. It may be killed at any instruction, and several may
// serve. A trial goes to one program at a time, since a lease is written on
// condition that the trial is the one that was read. A call that is sent again
// is done once: [Server.Ask] by its request's ID, which becomes the lease's
// name; [Server.Report] by its number, which is an offset in the store;
// [Server.Complete] by the lease.
//
// Who may do what is for [Access] to say: whoever asks and tells must be allowed
// to update trials of the namespace.
package asktell
