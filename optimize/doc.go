// SPDX-License-Identifier: Apache-2.0

// Package optimize searches for the parameters that make an objective best.
// It is a library of its own: it needs no server, no cluster and no database.
//
// # The model
//
// A [Space] is a list of [Parameter]s, each with the values that it may take
// and how likely they are before anything is known. A parameter may depend on
// another, and exist only where that has certain values; constraints may
// exclude combinations of values. A [Point] is one choice of a value for each
// parameter that it has.
//
// A [History] is the list of the points suggested so far, by index from 0, with
// what came of those that are finished. A [Sampler] looks at a history and
// suggests the point that follows it. It is a pure function: the same sampler,
// seed and history give the same point. So nothing about a search needs to be
// saved but its history, and a search that was interrupted goes on as if it had
// not been.
//
// A [Study] puts these together for a program that asks for points and tells
// results, from as many goroutines as it likes.
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
//   - pbt trains a population, and has bad members go on from good ones.
//   - nsga2 breeds the best trials, of several objectives too.
//   - regularized-evolution mutates the best of the newest trials.
//   - bayesianoptimization models the objective, by a Gaussian process or by
//     trees, and suggests what promises most.
//   - enas lets a network write architectures of networks, and learn which are
//     good; package [diwan.dev/diwan/optimize/nas] makes their spaces.
//   - darts gives its one trial the architectures to choose from.
//   - hyperband and asha try many points with little of a resource, such as
//     epochs, and the best of them again with more.
//   - bohb takes what hyperband tries from a model of what was good so far.
//
// [New] makes them by name. None but pbt suggests a point of a finite space twice,
// and each says [ErrExhausted] once such a space has no other point left. Package
// [diwan.dev/diwan/optimize/optimizetest] holds every sampler to these rules.
//
// # Before and after a search
//
// What is known before a search makes it shorter: results from elsewhere
// ([History.AddKnown]), a belief about where a good value is
// ([Parameter.Around]), and earlier searches, also of other spaces
// ([NewTransfer]; [RankSources] tells which are similar). [RegretBound] says
// when what a search may still find is not worth having, and package
// [diwan.dev/diwan/optimize/insight] what it has found out.
//
// # Numbers
//
// A step has one meaning everywhere: the values are min, min + step,
// min + 2·step, … as long as they do not exceed max. They are computed in
// decimal, so that 0.1 + 2·0.1 is 0.3 and is written so. A value without step
// is written with the fewest digits that read back as the same number.
//
// A log-uniform value has a uniform logarithm; a reverse log-uniform one is as
// close to max as a log-uniform one is to min. A normal value has its mean in
// the middle between min and max and a standard deviation of a sixth of their
// distance, which is Katib's convention, or those that the user gives; the
// distribution is cut off at min and max, which Katib does not do. A log-normal
// value has a normal logarithm.
package optimize
