// SPDX-License-Identifier: Apache-2.0

// Package forest predicts a number from a row of numbers with regression trees,
// including an uncertainty estimate: random forests, extremely randomized trees
// and gradient boosting.
//
// A row has a column for each parameter. A numeric column holds numbers, mostly
// from 0 to 1. A categorical column of n categories holds numbers from 0 to 1
// too, and a number u stands for category ⌊u·n⌋, as in the unit cube of a
// search space. NaN in any column means that the value is missing, such as that
// of a parameter that does not exist for the other values of the row; to a
// tree, missing is a value like any other, and never equal to a number.
//
// Trees grow on columns sorted into at most 255 bins with about the same number
// of rows each: with fewer distinct values, that is exact. A model is a pure
// function of the data, the configuration and the seed.
package forest
