// SPDX-License-Identifier: Apache-2.0

// Package cma is the covariance matrix adaptation evolution strategy, CMA-ES,
// on plain vectors.
//
// A [Distribution] is a normal distribution N(m, σ²·A·C·A). A generation is a
// number of points drawn from it; [Distribution.Update] takes them from best to
// worst and moves the mean m, the step size σ and the covariance C toward the
// better ones. The update is that of N. Hansen, "The CMA evolution strategy: a
// tutorial", arXiv:1604.00772, with its default parameters and negative
// weights. A is diagonal and 1 except for rounded coordinates, where it keeps
// the neighboring values within reach (see [Grid]).
//
// A [Search] runs generations one result at a time, in whatever order results
// arrive, restarts when a descent has converged, and saves evaluations with a
// quadratic surrogate model (see [Search.Next]).
package cma
