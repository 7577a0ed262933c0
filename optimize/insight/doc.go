// SPDX-License-Identifier: Apache-2.0

// Package insight tells what a search has found out: which parameters matter
// and how, how the search went, and what the trade-offs are.
//
// # The model
//
// Every function reads an [optimize.History] and returns plain data, ready to
// be drawn or written as JSON. Trials that are complete count, and so do
// results that were known before. Values keep their sign and unit: what is
// maximised is large where it is good.
//
// Importance is a share of a variance. Let x be a point drawn from the space as
// the user declared it, before any search, and f(x) the objective there. What a
// parameter is worth is how much the mean of f, over all else, moves with it:
// the variance of that mean as a share of the variance of f. The shares of
// parameters and of their interactions add up to 1. [Fit] learns f by a random
// forest, of which means and variances can be computed without sampling
// (functional ANOVA). [PEDANOVA] asks instead what makes a trial one of the
// best; it is faster and looks closer at the good end.
//
// A parameter that depends on another exists with some probability. Its share
// counts what it does where it exists; that it exists at all is the doing of
// the parameter that it depends on.
package insight
