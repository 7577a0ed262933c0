// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// forecast is the predictive distribution of a curve's final value: a mixture of
// Student's t distributions, one for each shape of curve.
type forecast []forecastPart

type forecastPart struct {
	weight float64
	distuv.StudentsT
}

// below returns the probability that the end is below a loss.
func (f forecast) below(loss float64) float64 {
	p := 0.0
	for _, part := range f {
		p += part.weight * part.CDF(loss)
	}
	return p
}

// mean returns the expected end.
func (f forecast) mean() float64 {
	m := 0.0
	for _, part := range f {
		m += part.weight * part.Mu
	}
	return m
}

// shapes are those of the curves that are mixed, as functions of the part x of
// the way from the first step to the last: exponential ones, exp(−x/τ), and
// powers (1+x/κ)^−c that start at κ. Domhan, Springenberg and Hutter ("Speeding
// up automatic hyperparameter optimization of deep neural networks by
// extrapolation of learning curves", 2015) mix such families with Monte Carlo;
// with the scales on a grid, what is left is linear and has a closed form.
var shapes = makeShapes()

func makeShapes() []func(x float64) float64 {
	var list []func(x float64) float64
	for _, tau := range []float64{0.02, 0.05, 0.15, 0.4, 1} {
		list = append(list, func(x float64) float64 { return math.Exp(-x / tau) })
	}
	for _, kappa := range []float64{0.005, 0.02, 0.1, 0.4} {
		for _, c := range []float64{0.3, 0.7, 1.5} {
			list = append(list, func(x float64) float64 { return math.Pow(1+x/kappa, -c) })
		}
	}
	return list
}

// The prior of the noise's variance is inverse gamma, with noiseShape as its
// shape, worth twice as many observations, and about the square of noisePart
// times the improvement expected as its size.
const (
	noiseShape = 1.5
	noisePart  = 0.05
)

// extrapolate fits each shape φ, scaled to fall from 1 at x = 0 to 0 at x = 1,
// to observations as y = a + b·φ(x) + noise, and returns the forecast of y at
// x = 1. It is Bayesian linear regression with the conjugate prior (Bishop,
// "Pattern recognition and machine learning", 2006, §3.3): any a is as likely,
// b is normal around 0 with about the deviation improvement, and shapes weigh
// by how likely they make the observations. There are at least two of these,
// all finite, and improvement is positive.
func extrapolate(xs, ys []float64, improvement float64) forecast {
	n := float64(len(xs))
	yMean := average(ys)
	var syy float64
	for _, y := range ys {
		syy += (y - yMean) * (y - yMean)
	}
	prior := noisePart * noisePart // of b, in units of the noise
	sigma := noisePart * improvement
	shape := noiseShape + (n-1)/2
	f, logs := make(forecast, len(shapes)), make([]float64, len(shapes))
	phis := make([]float64, len(xs))
	for k, phi := range shapes {
		first, last := phi(0), phi(1)
		for i, x := range xs {
			phis[i] = (phi(x) - last) / (first - last)
		}
		mean := average(phis)
		precision, cross := prior, 0.0
		for i, p := range phis {
			precision += (p - mean) * (p - mean)
			cross += (p - mean) * (ys[i] - yMean)
		}
		b := cross / precision
		rate := noiseShape*sigma*sigma + math.Max(syy-b*cross, 0)/2
		logs[k] = math.Log(prior/precision)/2 - shape*math.Log(rate)
		f[k].StudentsT = distuv.StudentsT{
			Mu:    yMean - b*mean,
			Sigma: math.Sqrt(rate / shape * (1 + 1/n + mean*mean/precision)),
			Nu:    2 * shape,
		}
	}
	total, most := 0.0, logs[0]
	for _, l := range logs {
		most = math.Max(most, l)
	}
	for k, l := range logs {
		f[k].weight = math.Exp(l - most)
		total += f[k].weight
	}
	for k := range f {
		f[k].weight /= total
	}
	return f
}

func average(numbers []float64) float64 {
	sum := 0.0
	for _, x := range numbers {
		sum += x
	}
	return sum / float64(len(numbers))
}
