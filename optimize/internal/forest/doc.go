// SPDX-License-Identifier: Apache-2.0

// Package forest predicts a number from a row of numbers by regression trees,
// with an idea of how wrong it may be: random forests, extremely randomised
// trees and gradient boosting.
//
// A row has a column for each parameter. A numeric column holds numbers, mostly
// from 0 to 1. A categorical column of n categories holds numbers from 0 to 1
// too, and a number u stands for category ⌊u·n⌋, as in the unit cube of a
// search space. NaN in any column says that the value is missing, as that of a
// parameter which does not exist for the other values of the row; missing is a
// value like any other for a tree, and never the same as a number.
//
// Trees grow on columns sorted into at most 255 bins, each of which holds about
// as many rows: with fewer different values, that is exact. A model is a pure
// function of the data, the configuration and the seed.
package forest
