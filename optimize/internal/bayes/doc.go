// SPDX-License-Identifier: Apache-2.0

// Package bayes proposes where in the unit cube to evaluate next, by Bayesian
// optimisation.
//
// A [Search] gets all that is known as [Data]: points of the cube and what came
// of them. It models each outcome by a Gaussian process, and looks for the point
// at which an acquisition function of the predictions is greatest. Points that
// are being evaluated count as evaluated with the outcome that is expected of
// them, so that no two workers get the same.
//
// Every other proposal may be a local one: a model of the neighbourhood of the
// best point alone, in which a smooth function looks like a quadratic one, is
// minimised within a trust region. Where that region is as large as the
// distances of the points around the best, it grows by itself while steps
// succeed and shrinks when they fail. A global model finds the right valley with
// few evaluations, and a local one its bottom to many digits.
//
// Proposals are a pure function of the data and the random numbers. The
// parameters of a kernel are found anew when the data have grown by a tenth,
// from the first of them alone, so that each set of them is needed for several
// proposals and remembered in between.
package bayes
