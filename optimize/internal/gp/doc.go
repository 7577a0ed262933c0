// SPDX-License-Identifier: Apache-2.0

// Package gp predicts a function from some of its values by a Gaussian process.
//
// An input is a row of features, mostly from 0 to 1. Each feature belongs to a
// group, and the features of a group share a length: over how far the function
// changes. A [Kernel] has the lengths and the sizes of what the function is made
// of. [Fit] finds the likeliest one given observations and a [Prior], and [New]
// makes the [Model] that predicts mean and variance at other inputs.
//
// Outputs have about mean 0 and variance 1; [Warp] makes them so.
//
// The equations are those of Rasmussen and Williams, "Gaussian processes for
// machine learning", 2006, chapters 2 and 5.
package gp
