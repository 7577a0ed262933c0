// SPDX-License-Identifier: Apache-2.0

// Package trial reconciles Trials: it creates the run object of each, usually a
// batch Job, follows it to its end, and writes down what the run's metrics came
// to.
//
//	Trial ─▶ create run object ─▶ follow ─▶ read observation ─▶ Succeeded, Failed
//	                                                            or MetricsUnavailable
//	      ─▶ delete run object, unless it is to be retained
//
// A run object may be of any kind that package trialkind permits. Jobs are
// watched from the start, others from when the first trial has such a one. A
// trial whose run object cannot be created for now, as for a kind that is yet to
// be installed, is held: its condition Running is False and says what to do.
//
// What becomes of a trial that has not ended is decided by a pure function from
// its run object, its status and its experiment (decide.go): begin, follow, run
// again after a failure, suspend, stop. A decision to stop is written down first,
// as the condition that the trial will end with, and then carried out, so that it
// holds whoever dies meanwhile.
//
// The experiment rendered the run object into spec.runSpec; here it is created,
// owned by its trial. Metrics come from an [observation.Store]: whoever
// collects them has stored them before the run object reports its end, so that
// they are read once and nothing is waited for. A store that cannot be read is
// an error that is tried again, and never "metrics are unavailable".
//
// A short trial costs the API server four writes: the Trial and its run object
// are created, the status is written, the run object is deleted. The condition
// Running is written only once a trial has run for a moment.
//
// A deleted trial goes only when its run object, with everything that runs, is
// gone and its observation is deleted, so that a trial of the same name can
// follow it.
package trial
