// SPDX-License-Identifier: Apache-2.0

// Package experiment reconciles Experiments: it asks for suggestions, makes
// trials of them, counts what becomes of the trials and says when it is done.
//
// # Read, decide, write
//
// [Reconciler.Reconcile] reads three things: the Experiment, its Suggestion,
// and the roster, which is what the trials' watch last said, kept so that
// looking at all trials costs microseconds. decide is a pure function from
// these to a plan: ask for more suggestions, create these trials, end so many,
// change this condition. Carrying out a plan is safe to repeat, and safe when
// what was read is out of date.
//
// # Why no trial is made twice, and never one too many
//
// Suggestions are numbered from 0, and the number gives the trial's name, so
// that a trial exists once or not at all. The only budget that is spent is
// Suggestion.spec.requests: it never falls, never exceeds maxTrialCount, and is
// written on condition that the Suggestion is the one that was read. Trials are
// made of suggestions alone, so there are never more than were asked for,
// whatever the caches say.
//
// A suggestion whose trial is gone, because parallelTrialCount was lowered or
// someone deleted it, waits to be run again with the same parameters; the
// lowest number goes first.
package experiment
