// SPDX-License-Identifier: Apache-2.0

// Package optimize searches for the parameters that optimize an objective. It is a
// standalone library: it needs no server, no cluster and no database.
//
// # The model
//
// A [Space] is a list of [Parameter]s, each with its possible values and their
// prior distribution. A parameter may depend on another, and exist only if that
// has certain values; constraints may exclude combinations of values. A [Point]
// assigns a value to each parameter that it has.
//
// A [History] is the list of the points suggested so far, by index from 0, with
// the results of the finished ones. A [Sampler] takes a history and suggests the
// next point. It is a pure function: the same sampler, seed and history give the
// same point. A sampler's notes about a suggestion are in the point's labels
// ([Point.Labels]), which are part of the history.
//
// A [Study] puts these together for a program that asks for points and tells
// results, from as many goroutines as it likes. [Study.Save] writes it as JSON:
// the space, how the sampler was created, and the history with its labels.
// [LoadStudy] resumes from there, in any process, as if there had been no
// interruption. A program that stores these elsewhere, as Diwan's controller does
// in Kubernetes objects, stores the labels with the points.
//
// # Samplers
//
//   - auto, the default, chooses one of the others for each suggestion.
//   - random draws each point from the distributions of its parameters.
//   - grid visits every point of a finite space.
//   - sobol spreads points evenly, by a scrambled Sobol sequence; halton by a
//     scrambled Halton sequence.
//   - tpe models where the good trials are and where the others, each parameter
//     by itself; multivariate-tpe models parameters together. Both take several
//     objectives, constraints and conditional parameters.
//   - cmaes learns the shape of a normal distribution of good points.
//   - pbt trains a population, in which bad members continue from good ones.
//   - nsga2 breeds the best trials, of several objectives too.
//   - regularized-evolution mutates the best of the newest trials.
//   - bayesianoptimization models the objective, by a Gaussian process or by
//     trees, and suggests what promises most.
//   - enas trains a network to generate architectures, and learns which are
//     good; package [diwan.dev/diwan/optimize/nas] builds their spaces.
//   - darts gives its one trial the architectures to choose from.
//   - hyperband and asha try many points with a small budget, such as few
//     epochs, and the best of them again with a larger one.
//   - bohb takes what hyperband tries from a model of what was good so far.
//
// [New] creates them by name. Only pbt suggests a point of a finite space twice,
// and each returns [ErrExhausted] once such a space has no points left. Package
// [diwan.dev/diwan/optimize/optimizetest] checks these rules for every sampler.
//
// # Before and after a search
//
// Prior knowledge shortens a search: known results ([History.AddKnown]), a guess
// of a good value ([Parameter.Around]), and earlier searches, also of other spaces
// ([NewTransfer]; [RankSources] ranks them by similarity). [RegretBound] bounds
// what a search may still gain, and package [diwan.dev/diwan/optimize/insight]
// analyzes its results.
//
// # Numbers
//
// A step means the same everywhere: the values are min, min + step, min + 2·step,
// … up to max. They are computed in decimal, so that 0.1 + 2·0.1 is 0.3 and is
// formatted so. A value without step is formatted with the fewest digits that
// parse back to the same number.
//
// A log-uniform value has a uniform logarithm; a reverse log-uniform one is as
// close to max as a log-uniform one is to min. A normal value has its mean in the
// middle between min and max and a standard deviation of a sixth of their
// distance, which is Katib's convention, or those given by the user; the
// distribution is truncated at min and max, unlike Katib's. A log-normal value has
// a normal logarithm.
package optimize
