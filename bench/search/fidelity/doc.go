// SPDX-License-Identifier: Apache-2.0

// Package fidelity measures the savings of searches that do not train every
// configuration to the end.
//
// A [Family] is a set of learning curves, one for each configuration: synthetic
// ones, and those of networks that are trained on digits. A search spends epochs
// on trials, and has at any time an incumbent: the trial with the best value that
// it has observed, at the epochs that the trial had. [Run] follows how good the
// incumbent really is, without noise or on held-out data, as epochs are spent.
// Random search trains each trial to the end; the target is the median of its
// final results, and the score is the fraction of its epochs after which another
// search has something as good.
package fidelity
