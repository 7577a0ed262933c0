// SPDX-License-Identifier: Apache-2.0

// Package analysis turns runs of the search benchmark into tables.
//
// Runs are compared in blocks: all optimizers with the same problem, seed and
// number of pending points. Within a block each gets a rank after a given
// number of trials, 1 for the best; a mean rank has a 95 % confidence interval
// from a bootstrap over blocks. A gap is the distance from the optimum, or, if
// that is unknown, from the best value that any run found; it is compared with
// the mean gap of random search on the same problem. Gaps below a small
// fraction of random's count as equal, since the difference does not matter in
// practice.
package analysis
