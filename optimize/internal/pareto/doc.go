// SPDX-License-Identifier: Apache-2.0

// Package pareto compares results that have several objectives.
//
// A result is a row of losses, one for each objective: less is better. One row
// dominates another if it is worse in none of them and better in one. The rows
// that no other dominates are the front of rank 0; those that only these
// dominate are the front of rank 1, and so on.
//
// The hypervolume of some rows is the volume that they dominate, bounded by a
// reference point on the worse side. More is better: it grows with each
// non-dominated row.
//
// Losses may be infinite. NaN counts as +Inf. All rows have the same length,
// at least 1.
package pareto
