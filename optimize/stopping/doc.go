// SPDX-License-Identifier: Apache-2.0

// Package stopping decides, while a trial runs, whether it is worth continuing.
// It knows nothing about search spaces: it uses only learning curves, and can be
// used without package optimize.
//
// # The model
//
// A trial reports values of the objective at steps: epochs, batches, folds,
// whatever it counts. These are its [Curve], and [Curves] has those of all
// trials of a search with the [Direction] in which values improve. A [Rule] uses
// them to give a [Verdict] on a running trial: stop, with the reason in a
// sentence, or continue. Rules are pure functions, so that a verdict can be
// recomputed after a restart, and only the curves need to be stored.
//
// # Rules
//
//   - medianstop stops a trial whose best value is worse than the median of the
//     other trials' averages: [MedianConfig].
//   - percentile does so for any percentile of their values: [PercentileConfig].
//   - successivehalving lets the best fraction of the trials pass each rung, without
//     waiting for the others: [HalvingConfig].
//   - hyperband spreads trials over several such ladders of rungs, of which the
//     later ones trust early values less: [HyperbandConfig].
//   - threshold stops a trial whose value leaves an interval: [ThresholdConfig].
//   - patience stops a trial that does not improve: [PatienceConfig].
//   - wilcoxon compares a trial with the best one step by step, where each step
//     is another instance of the problem: [WilcoxonConfig].
//   - curvefitting extrapolates the curve, and stops a trial that is unlikely to
//     become the best: [FittingConfig].
//
// [New] creates them by name. Package
// [diwan.dev/diwan/optimize/stopping/stoppingtest] is the conformance suite of
// all rules.
//
// # Values that are not finite
//
// An infinite or NaN value is worse than every other, in either direction: it
// comes from a diverged run or a bug.
package stopping
