// SPDX-License-Identifier: Apache-2.0

// Package earlystopping decides which trials of an experiment are not worth
// continuing. It combines three things: the experiment's spec.earlyStopping,
// the rules of package [diwan.dev/diwan/optimize/stopping], and the values that
// trials have reported to an observation store.
//
// # Steps
//
// The k-th value of the objective metric that a trial reports is its value at
// step k, ordered by time. Text that is not a number is not a step; NaN is one,
// and the worst.
//
// # Two kinds of rules
//
// A rule of the library, created by [New], judges a running trial after each of
// its reports, with all that other trials have reported until then. [History]
// keeps their learning curves for it.
//
// A rule in Katib's format, spec.earlyStoppingRules of a trial, is fixed when
// the trial is created, and [Met] reports whether it is met. [Fixed] converts a
// rule of the library to that format, as far as possible: what a trial must
// have reached at the first step at which it is judged. Katib's clients and
// services support only this format.
//
// A trial is stopped if either says so. The decision is recorded in the Trial
// ([diwan.dev/diwan/api/kubeflow/v1beta1.TrialStatus.Stop]); ending the run is
// the trial controller's work.
package earlystopping
