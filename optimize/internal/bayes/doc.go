// SPDX-License-Identifier: Apache-2.0

// Package bayes proposes the next point of the unit cube to evaluate, by
// Bayesian optimization.
//
// A [Search] gets everything known as [Data]: points of the cube and their
// outcomes. It models each outcome with a Gaussian process, and maximizes an
// acquisition function of the predictions. Pending points count as evaluated
// with their expected outcome, so that no two workers get the same point.
//
// Every other proposal may be local: a model of the neighborhood of the best
// point only, in which a smooth function looks quadratic, is minimized within a
// trust region. That region is as large as the distances of the points around
// the best, so it grows by itself while steps succeed and shrinks when they
// fail. A global model finds the right valley with few evaluations, and a local
// one its bottom to many digits.
//
// Proposals are a pure function of the data and the random numbers. The
// hyperparameters of a kernel are refitted when the data has grown by a tenth,
// using only the data up to then, so that each set serves several proposals and
// is cached in between.
package bayes
