// SPDX-License-Identifier: Apache-2.0

// Package parzen estimates densities on the unit cube by mixtures of kernels,
// for tree-structured Parzen estimators (Bergstra et al., "Algorithms for
// hyper-parameter optimization", 2011).
//
// A [Mixture] has one kernel around each observed row and one more, the prior,
// which is uniform. A kernel is a product over axes: a normal distribution cut
// off at 0 and 1 on a continuous axis, the masses that such a distribution
// gives to cells on an axis that has finitely many values in an order, and a
// bit more likely than uniform at the observed value on an axis without order.
// With [Joint] widths the kernels of the fine axes are normal distributions
// with one covariance, that of the rows, so that they lie along valleys that
// are not parallel to an axis.
//
// Densities are with respect to the uniform distribution: 1 everywhere is no
// information. So the density of a cell is its mass divided by its width.
package parzen
