// SPDX-License-Identifier: Apache-2.0

// Package experiment reconciles Experiments: it requests suggestions, creates
// trials from them, counts their outcomes and decides when the experiment is
// done.
//
// # Read, decide, write
//
// [Reconciler.Reconcile] reads three things: the Experiment, its Suggestion,
// and the roster, which caches the trials' watch so that looking at all trials
// costs microseconds. decide is a pure function from these to a plan: request
// more suggestions, create these trials, end so many, change this condition.
// Executing a plan is idempotent, and safe with stale reads.
//
// # Why no trial is made twice, and never one too many
//
// Suggestions are numbered from 0, and the number determines the trial's name,
// so that a trial exists once or not at all. The only budget that is spent is
// Suggestion.spec.requests: it never decreases, never exceeds maxTrialCount,
// and is written with optimistic concurrency. Trials are created only from
// suggestions, so there are never more than were requested, whatever the caches
// contain.
//
// A suggestion whose trial is gone, because parallelTrialCount was lowered or
// someone deleted it, is run again with the same parameters; the lowest number
// goes first.
package experiment
