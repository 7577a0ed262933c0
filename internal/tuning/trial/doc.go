// SPDX-License-Identifier: Apache-2.0

// Package trial reconciles Trials: it creates the run object of each, usually a
// batch Job, follows it to completion, and records the run's metrics.
//
//	Trial ─▶ create run object ─▶ follow ─▶ read observation ─▶ Succeeded, Failed
//	                                                            or MetricsUnavailable
//	      ─▶ delete run object, unless it is to be retained
//
// A run object may be of any kind that package trialkind permits. Jobs are watched
// from the start, others from the first trial that uses them. A trial whose run
// object cannot be created for now, for example because its kind is not installed
// yet, is pending: its condition Running is False and says what to do.
//
// A pure function of a trial's run object, its status and its experiment decides
// the next step of an unfinished trial (decide.go): start, follow, retry after a
// failure, suspend, stop. A decision to stop is recorded first, as the condition
// with which the trial will end, and then executed, so that it survives any failure
// in between.
//
// The experiment rendered the run object into spec.runSpec; here it is created,
// owned by its trial. Metrics come from an [observation.Store]: the collector has
// stored them before the run object reports its end, so they are read once, without
// waiting. A store that cannot be read is an error that is retried, and never
// "metrics are unavailable".
//
// A short trial costs the API server four writes: the Trial and its run object
// are created, the status is written, the run object is deleted. The condition
// Running is written only once a trial has run for a moment.
//
// A deleted trial disappears only when its run object, with all its Pods, is gone
// and its observation is deleted, so that the name can be reused.
package trial
