// SPDX-License-Identifier: Apache-2.0

// Package earlystopping decides which trials of an experiment are not worth
// going on. It joins three things: the experiment's spec.earlyStopping, the
// rules of package [diwan.dev/diwan/optimize/stopping], and the values that
// trials have reported to an observation store.
//
// # Steps
//
// The k-th value of the objective metric that a trial reports is its value at
// step k, in the order of their times. Text that is no number is no step; NaN
// is one, and the worst there is.
//
// # Two kinds of rules
//
// A rule of the library, found by [New], judges a running trial anew after each
// of its reports, by all that other trials have reported up to then. [History]
// keeps their learning curves for it.
//
// A rule in Katib's form, spec.earlyStoppingRules of a trial, is fixed when the
// trial is made, and [Met] tells whether it has come true. [Fixed] puts a rule
// of the library into that form, as far as it can be said in it: what a trial
// must have reached at the first step at which it is judged. Katib's clients
// and services know this form alone.
//
// A trial is stopped when either says so. The decision is written to the Trial
// ([diwan.dev/diwan/api/kubeflow/v1beta1.TrialStatus.Stop]); ending the run is
// the trial controller's work.
package earlystopping
