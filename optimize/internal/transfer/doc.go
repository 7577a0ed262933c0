// SPDX-License-Identifier: Apache-2.0

// Package transfer predicts a search from earlier ones, on points of the unit cube.
//
// Each [Source] is modelled by a Gaussian process of the ranks of its values. The
// [Models] are weighted by how well they order the results of the [Target], and a
// [Stack] adds a process of what they miss.
package transfer
