// SPDX-License-Identifier: Apache-2.0

// Package regret bounds how much better than the best result the optimum may be, by
// a Gaussian process of the best results (Makarova et al., "Automatic termination
// for hyperparameter optimization", 2022).
package regret
