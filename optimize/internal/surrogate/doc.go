// SPDX-License-Identifier: Apache-2.0

// Package surrogate models results at points of the unit cube by a Gaussian
// process, and looks for points that such a model rates low. Where results are not
// the search's own, or only their order counts, this is enough; package bayes
// learns more from those of one search.
package surrogate
