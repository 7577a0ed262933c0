// SPDX-License-Identifier: Apache-2.0

// Package stopping decides, while a trial runs, whether it is worth going on.
// It knows nothing of search spaces: it looks at learning curves alone, and
// can be used without package optimize.
//
// # The model
//
// A trial reports values of the objective at steps: epochs, batches, folds,
// whatever it counts. These are its [Curve], and [Curves] holds those of all
// trials of a search with the [Direction] in which values are better. A [Rule]
// looks at them and gives a [Verdict] on a running trial: stop, with the reason
// in a sentence, or go on. Rules are pure functions, so that a verdict can be
// had again after a restart, and nothing but the curves needs to be stored.
//
// # Rules
//
//   - medianstop stops a trial whose best value is worse than the median of the
//     other trials' averages: [MedianConfig].
//   - percentile does so for any percentile of their values: [PercentileConfig].
//   - successivehalving lets the best part of the trials pass each rung, without
//     waiting for the others: [HalvingConfig].
//   - hyperband spreads trials over several such ladders of rungs, of which the
//     later ones trust early values less: [HyperbandConfig].
//   - threshold stops a trial whose value leaves an interval: [ThresholdConfig].
//   - patience stops a trial that does not improve: [PatienceConfig].
//   - wilcoxon compares a trial with the best one step by step, where each step
//     is another instance of the problem: [WilcoxonConfig].
//   - curvefitting extrapolates the curve, and stops a trial that will hardly
//     become the best: [FittingConfig].
//
// [New] makes them by name. Package
// [diwan.dev/diwan/optimize/stopping/stoppingtest] holds every rule to what all
// have in common.
//
// # Values that are no numbers
//
// A value that is not a number is worse than every other one. Infinite values
// are values like any other.
package stopping
