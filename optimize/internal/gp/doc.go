// SPDX-License-Identifier: Apache-2.0

// Package gp predicts a function from some of its values with a Gaussian
// process.
//
// An input is a row of features, mostly from 0 to 1. Each feature belongs to a
// group, and the features of a group share a length scale. A [Kernel] has the
// length scales and the amplitudes of the function's components. [Fit] finds the
// most likely one given observations and a [Prior], and [New] creates the
// [Model] that predicts mean and variance at other inputs.
//
// Outputs have about mean 0 and variance 1; [Warp] normalizes them.
//
// The equations are those of Rasmussen and Williams, "Gaussian processes for
// machine learning", 2006, chapters 2 and 5.
package gp
