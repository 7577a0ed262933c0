// SPDX-License-Identifier: Apache-2.0

// Package insight analyzes a search: which parameters matter and how, how the
// search progressed, and what the trade-offs are.
//
// # The model
//
// Every function takes an [optimize.History] and returns plain data, ready to
// be plotted or written as JSON. Complete trials and known results count.
// Values keep their sign and unit: a maximized objective is large where it is
// good.
//
// Importance is a share of a variance. Let x be a point drawn from the space as
// the user declared it, before any search, and f(x) the objective there. The
// importance of a parameter is how much the mean of f, over all others, varies
// with it: the variance of that mean as a share of the variance of f. The
// shares of parameters and of their interactions add up to 1. [Fit] learns f
// with a random forest, whose means and variances can be computed without
// sampling (functional ANOVA). [PEDANOVA] asks instead what makes a trial one
// of the best; it is faster and looks closer at the good end.
//
// A parameter that depends on another exists with some probability. Its share
// measures its effect where it exists; the effect of its existence is
// attributed to the parameter that it depends on.
package insight
