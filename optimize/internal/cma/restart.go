// SPDX-License-Identifier: Apache-2.0

package cma

import "math"

// descent is what decides when a search restarts, and how.
type descent struct {
	history      []float64 // best values of the generations of this descent
	spread       float64   // of the values of the last generation
	evaluations  int       // results of this descent
	large, small int       // evaluations of descents with large and with small populations
	size         int       // the last large population
	isSmall      bool
}

func (d *descent) begin(dist *Distribution) {
	d.history, d.evaluations = nil, 0
	d.size = max(d.size, dist.Size())
}

// note takes down a generation that has ended, its results from best to worst.
func (d *descent) note(results []result) {
	best, worst := results[0].value, results[len(results)-1].value
	d.history = append(d.history, best)
	d.spread = worst - best
	d.evaluations += len(results)
}

const (
	leastDeviation = 1e-11 // of the unit cube: TolX
	leastChange    = 1e-12 // of the values, absolute or relative: TolFun
	worstCondition = 1e7   // of the lengths of the axes: ConditionCov is its square
	greatestSigma  = 1e3   // TolUpSigma
)

// converged reports whether a descent has nowhere to go: the criteria TolX,
// TolFun, ConditionCov and TolUpSigma of the tutorial, appendix B.3.
func (d *descent) converged(dist *Distribution) bool {
	if dist.sigma > greatestSigma {
		return true
	}
	widest, narrowest := 0.0, math.Inf(1)
	for _, s := range dist.scales {
		widest, narrowest = math.Max(widest, s), math.Min(narrowest, s)
	}
	if widest > worstCondition*narrowest || dist.sigma*widest < leastDeviation {
		return true
	}
	window := 10 + int(math.Ceil(30*float64(len(dist.mean))/float64(dist.Size())))
	if len(d.history) < window {
		return false
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range d.history[len(d.history)-window:] {
		lo, hi = math.Min(lo, v), math.Max(hi, v)
	}
	least := leastChange
	if !math.IsInf(lo, 0) {
		least *= math.Max(1, math.Abs(lo))
	}
	flat := func(change float64) bool { return change <= least || math.IsNaN(change) } // NaN: all infinite
	return flat(hi-lo) && flat(d.spread)
}

// restart begins a descent from a random place.
func (s *Search) restart() {
	d := &s.descent
	if d.isSmall {
		d.small += d.evaluations
	} else {
		d.large += d.evaluations
	}
	n := len(s.config.Mean)
	z := make([]float64, n+2)
	s.config.Normal(s.generation, -1, z)
	for i := range z {
		z[i] = normalBelow(z[i])
	}
	size, sigma := 2*d.size, s.config.Sigma
	d.isSmall = s.config.Restart == BIPOP && d.small < d.large
	if d.isSmall {
		first := float64(s.config.Size)
		size = int(first * math.Pow(math.Max(1, float64(d.size)/first/2), z[n]*z[n]))
		sigma *= math.Pow(10, -2*z[n+1])
	}
	mostPoints := 100 * s.config.Size
	s.dist = NewDistribution(z[:n], sigma, min(size, mostPoints), s.config.Separable, s.config.Grid)
	if d.isSmall {
		d.history, d.evaluations = nil, 0
	} else {
		d.begin(s.dist)
	}
	s.archive, s.seen, s.model, s.fitted = nil, 0, nil, 0
}
