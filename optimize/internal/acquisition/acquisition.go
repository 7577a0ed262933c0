// SPDX-License-Identifier: Apache-2.0

// Package acquisition says how much an evaluation promises, given what a model
// predicts of its outcome.
//
// All values are to be minimized, and predictions are normal: each has a mean
// and a deviation. A [Function] is greater where an evaluation promises more,
// and tells its derivatives by the means and deviations, so that it can be
// climbed. Those that are products or can underflow are logarithms (Ament et
// al., "Unexpected improvements to expected improvement for Bayesian
// optimization", 2023).
package acquisition

import "math"

// Prediction is what a model says of one outcome.
type Prediction struct{ Mean, Deviation float64 }

// Slope is the derivative of a function by the parts of a prediction.
type Slope struct{ Mean, Deviation float64 }

// Function rates predictions of one or several outcomes. It writes its
// derivative by each of them to slopes, which has their number.
type Function func(outcomes []Prediction, slopes []Slope) float64

// LogImprovement returns the logarithm of the expected improvement on the best
// value so far.
func LogImprovement(best float64) Function {
	return func(outcomes []Prediction, slopes []Slope) float64 {
		value, slope := logImprovement(best, outcomes[0])
		slopes[0] = slope
		return value
	}
}

// LogProbability returns the logarithm of the probability of a value below a
// threshold.
func LogProbability(threshold float64) Function {
	return func(outcomes []Prediction, slopes []Slope) float64 {
		value, slope := logProbability(threshold, outcomes[0])
		slopes[0] = slope
		return value
	}
}

// Bound returns minus the lower confidence bound: deviations times the
// deviation less the mean.
func Bound(deviations float64) Function {
	return func(outcomes []Prediction, slopes []Slope) float64 {
		slopes[0] = Slope{-1, deviations}
		return deviations*outcomes[0].Deviation - outcomes[0].Mean
	}
}

// Feasible returns f, a logarithm, of the first outcomes plus the logarithm of
// the probability that each of the others is at most 0.
func Feasible(f Function, objectives int) Function {
	return func(outcomes []Prediction, slopes []Slope) float64 {
		value := 0.0
		if f != nil {
			value = f(outcomes[:objectives], slopes[:objectives])
		} else {
			clear(slopes[:objectives])
		}
		for i := objectives; i < len(outcomes); i++ {
			p, slope := logProbability(0, outcomes[i])
			value += p
			slopes[i] = slope
		}
		return value
	}
}

// logImprovement is log E[max(0, best − Y)] = log σ + log h(z), with
// z = (best − μ)/σ and h(z) = φ(z) + z·Φ(z).
func logImprovement(best float64, p Prediction) (float64, Slope) {
	z := (best - p.Mean) / p.Deviation
	h, ratio := logH(z)
	return math.Log(p.Deviation) + h, Slope{-ratio / p.Deviation, (1 - z*ratio) / p.Deviation}
}

func logProbability(threshold float64, p Prediction) (float64, Slope) {
	z := (threshold - p.Mean) / p.Deviation
	value := logCumulative(z)
	hazard := math.Exp(-z*z/2 - logRoot2Pi - value) // φ/Φ
	if z < -1e4 {                                   // where the exponent is lost in rounding
		hazard = -z
	}
	return value, Slope{-hazard / p.Deviation, -z * hazard / p.Deviation}
}
