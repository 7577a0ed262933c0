// SPDX-License-Identifier: Apache-2.0

// Package tpe is the tree-structured Parzen estimator on points of the unit cube.
//
// [Evidence] ranks the trials of a search and divides them into good ones and
// others. A [Model] of either, a mixture of kernels for each [Group] of
// coordinates, says where they are likely, and proposes points that are as much
// more likely among the good than among the others as possible.
//
// A coordinate that a point does not have is not a number.
package tpe
