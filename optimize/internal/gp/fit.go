// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"diwan.dev/diwan/optimize/internal/lbfgs"
)

// Normal is a normal distribution of the logarithm of a positive number.
type Normal struct{ Mean, Deviation float64 }

// Prior is what is believed of a kernel before any observation, of outputs
// with mean 0 and variance 1 and inputs in the unit cube.
type Prior struct {
	// Length is the geometric mean of the lengths, and Spread the deviation of
	// their logarithms from its own.
	Length       Normal
	Spread       float64
	Scale, Noise Normal
	// Trend is that of the quadratic part. A deviation of 0 leaves it out.
	Trend Normal
	// MinNoise is the least noise that is believed.
	MinNoise float64
	// Lengths is how many groups of features there are.
	Lengths int
}

// DefaultPrior returns the prior for a number of lengths. That of a length
// grows with the square root of their number, as distances in a cube do, so
// that many dimensions are not taken for many independent values (Hvarfner,
// Hellsten and Nardi, "Vanilla Bayesian optimization performs great in high
// dimensions", 2024). That of the noise is wide: an objective may be exact or
// vary by as much as it matters.
func DefaultPrior(lengths int) Prior {
	return Prior{
		Lengths:  lengths,
		Length:   Normal{math.Log(float64(lengths))/2 - 0.5, 1},
		Spread:   0.4,
		Scale:    Normal{0.5, 1},
		Trend:    Normal{-4, 2},
		Noise:    Normal{-9, 3},
		MinNoise: 1e-8,
	}
}

// parameters is the number of logarithms that make a kernel.
func (p Prior) parameters() int { return p.Lengths + 3 }

func (p Prior) normal(i int) Normal {
	switch i - p.Lengths {
	case 0:
		return p.Scale
	case 1:
		return p.Trend
	case 2:
		return p.Noise
	}
	return p.Length
}

// kernel returns the kernel whose parameters have some logarithms.
func (p Prior) kernel(logs []float64) Kernel {
	k := Kernel{Lengths: make([]float64, p.Lengths), Scale: math.Exp(logs[p.Lengths]), Noise: math.Exp(logs[p.Lengths+2])}
	for i := range k.Lengths {
		k.Lengths[i] = math.Exp(logs[i])
	}
	if p.Trend.Deviation > 0 {
		k.Trend = math.Exp(logs[p.Lengths+1])
	}
	return k
}

// logarithms returns those of the parameters of a kernel.
func (p Prior) logarithms(k Kernel) []float64 {
	logs := make([]float64, p.parameters())
	for i := range k.Lengths {
		logs[i] = math.Log(k.Lengths[i])
	}
	logs[p.Lengths] = math.Log(k.Scale)
	if k.Trend > 0 {
		logs[p.Lengths+1] = math.Log(k.Trend)
	}
	logs[p.Lengths+2] = math.Log(k.Noise)
	return logs
}

// Mode returns the kernel that is likeliest before any observation.
func (p Prior) Mode() Kernel {
	logs := make([]float64, p.parameters())
	for i := range logs {
		logs[i] = p.normal(i).Mean
	}
	return p.kernel(logs)
}

// penalty returns minus the logarithm of the density of some parameters, but
// for a constant, and adds its derivatives to the gradient.
func (p Prior) penalty(logs, gradient []float64) float64 {
	lengths := logs[:p.Lengths]
	mean := floats.Sum(lengths) / float64(p.Lengths)
	z := (mean - p.Length.Mean) / p.Length.Deviation
	sum := z * z / 2
	for i, v := range lengths {
		gradient[i] += z / p.Length.Deviation / float64(p.Lengths)
		z := (v - mean) / p.Spread
		sum += z * z / 2
		gradient[i] += z / p.Spread
	}
	for i, n := range []Normal{p.Scale, p.Trend, p.Noise} {
		i += p.Lengths
		if n.Deviation == 0 {
			gradient[i] = 0
			continue
		}
		z := (logs[i] - n.Mean) / n.Deviation
		sum += z * z / 2
		gradient[i] += z / n.Deviation
	}
	return sum
}

// bounds returns the range in which parameters are sought.
func (p Prior) bounds() (lower, upper []float64) {
	lower, upper = make([]float64, p.parameters()), make([]float64, p.parameters())
	for i := range lower {
		n := p.normal(i)
		lower[i], upper[i] = n.Mean-4*n.Deviation, n.Mean+4*n.Deviation
		if i < p.Lengths {
			lower[i], upper[i] = n.Mean-6, n.Mean+6
		}
	}
	lower[p.Lengths+2], upper[p.Lengths+2] = math.Log(p.MinNoise), math.Log(2)
	return lower, upper
}

// Fit returns the kernel that is likeliest given what some inputs had for
// outputs, as near as a number of steps from a first guess comes to it, and the
// logarithm of its posterior density but for a constant.
func Fit(p Prior, start Kernel, steps int, groups []int, inputs [][]float64, outputs []float64) (Kernel, float64) {
	l := newLikelihood(p, groups, inputs, outputs)
	logs := p.logarithms(start)
	lower, upper := p.bounds()
	c := lbfgs.Default()
	c.Iterations, c.Tolerance = steps, 1e-3
	value := lbfgs.Minimize(l.at, logs, lower, upper, c)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return start, math.Inf(-1)
	}
	return p.kernel(logs), -value
}
