// SPDX-License-Identifier: Apache-2.0

// Package parzen estimates densities on the unit cube by mixtures of kernels,
// for tree-structured Parzen estimators (Bergstra et al., "Algorithms for
// hyper-parameter optimization", 2011).
//
// A [Mixture] has one kernel around each observed row and one more, the prior,
// which is uniform. A kernel is a product over axes: a normal distribution
// truncated at 0 and 1 on a continuous axis, its masses in cells on an axis
// with finitely many ordered values, and on an unordered axis slightly more
// likely than uniform at the observed value. With [Joint] widths the kernels
// of the fine axes are normal distributions with the covariance of the rows,
// so that they align with valleys that are not parallel to an axis.
//
// Densities are with respect to the uniform distribution: 1 everywhere is no
// information. So the density of a cell is its mass divided by its width.
package parzen
