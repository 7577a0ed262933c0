// SPDX-License-Identifier: Apache-2.0

// Package genetic is the selection and the variation of evolutionary algorithms.
//
// Variation works on points of the unit cube, in which each parameter's
// distribution is uniform, so that the size of a change is relative to the
// prior, whatever the scale.
package genetic
