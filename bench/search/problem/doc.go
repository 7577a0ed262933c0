// SPDX-License-Identifier: Apache-2.0

// Package problem has the problems of the search benchmark: functions with a
// known optimum and models to tune.
//
// A [Problem] has parameters and a function of them to minimize. There are five
// families:
//
//   - bbob: the 24 noiseless functions of the Black-Box Optimization
//     Benchmarking workshops, in any dimension from 2 and any instance. They
//     equal those of COCO to rounding.
//   - mixed: spaces with integers, categories, logarithms and parameters
//     that exist only where another has some value.
//   - noisy: functions of the first family under additive, multiplicative and
//     heavy-tailed noise. A search sees the noise; it is judged without.
//   - model: scikit-learn models on real data under cross validation, evaluated
//     by a Python process. Their optimum is not known.
//   - anchor: sixteen shifted functions whose results for other libraries are
//     on record.
//
// A problem is a pure function of its name: the instance in the name determines
// shifts, rotations, categories and offsets. Noise comes from a generator that
// the caller passes.
package problem
