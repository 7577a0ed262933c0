// SPDX-License-Identifier: Apache-2.0

package optimize

import "math"

// quantile returns the coordinate below which lies the part u of the
// distribution, for u from 0 to 1.
func (a *axis) quantile(u float64) float64 {
	if a.count > 0 && !a.shaped() {
		k := min(uint64(u*float64(a.count)), a.count-1)
		if a.sorted != nil {
			k = uint64(a.sorted[k])
		}
		return a.coordinate(k)
	}
	if a.count == 1 {
		return a.Min
	}
	x := a.spread(u)
	x = math.Min(math.Max(x, a.Min), a.top)
	if a.Step > 0 {
		k := math.Round((x - a.Min) / a.Step)
		return a.coordinate(min(uint64(k), a.count-1))
	}
	return x
}

// spread is the quantile function before rounding.
func (a *axis) spread(u float64) float64 {
	switch a.Distribution {
	case Normal:
		return a.normal(u)
	case LogNormal:
		return math.Exp(a.normal(u))
	case LogUniform:
		return math.Exp(between(a.lo, a.hi, u))
	case ReverseLogUniform:
		return a.Min + (a.top - math.Exp(between(a.lo, a.hi, 1-u)))
	}
	return between(a.lo, a.hi, u)
}

// between returns the number at the part u of the way from lo to hi.
func between(lo, hi, u float64) float64 {
	if width := hi - lo; !math.IsInf(width, 0) {
		return lo + u*width
	}
	return lo*(1-u) + hi*u // which does not overflow, but may fall by a rounding
}

// part returns how far x is on the way from lo to hi.
func part(lo, hi, x float64) float64 {
	return (x/2 - lo/2) / (hi/2 - lo/2) // halves do not overflow
}

// bell returns mean and deviation of the axis' normal distribution, in
// logarithms where it is of logarithms.
func (a *axis) bell() (mean, deviation float64) {
	from, to, mean := a.Min, a.Max, a.Mean
	if a.Distribution == LogNormal {
		from, to, mean = math.Log(from), math.Log(to), math.Log(mean)
	}
	if a.Deviation > 0 {
		return mean, a.Deviation
	}
	return from/2 + to/2, to/6 - from/6
}

// normal is the quantile function of the normal distribution between lo and
// hi.
func (a *axis) normal(u float64) float64 {
	mean, deviation := a.bell()
	if deviation == 0 {
		return mean
	}
	from, to := below((a.lo-mean)/deviation), below((a.hi-mean)/deviation)
	return mean - deviation*math.Sqrt2*math.Erfcinv(2*(from+u*(to-from)))
}

// below is the distribution function of the standard normal distribution.
func below(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// unit returns the part of the distribution that lies below a coordinate, from
// 0 to 1: the inverse of quantile. Where the axis has an end to its values it
// is the middle of those parts for which quantile returns the coordinate.
func (a *axis) unit(coordinate float64) float64 {
	if a.count == 1 {
		return 0.5
	}
	if a.count > 0 && !a.shaped() {
		k := a.index(coordinate)
		if a.rank != nil {
			k = uint64(a.rank[k])
		}
		return (float64(k) + 0.5) / float64(a.count)
	}
	if a.Step == 0 {
		return a.cumulate(coordinate)
	}
	return (a.cumulate(math.Max(coordinate-a.Step/2, a.first())) + a.cumulate(coordinate+a.Step/2)) / 2
}

// first returns the number at which the distribution begins.
func (a *axis) first() float64 {
	switch a.Distribution {
	case LogUniform, LogNormal:
		return math.Exp(a.lo)
	case ReverseLogUniform:
		return a.Min + (a.top - math.Exp(a.hi))
	}
	return a.lo
}

// cumulate is the distribution function of the axis before rounding.
func (a *axis) cumulate(x float64) float64 {
	var u float64
	switch a.Distribution {
	case Normal, LogNormal:
		if a.Distribution == LogNormal {
			x = math.Log(x)
		}
		mean, deviation := a.bell()
		from, to := below((a.lo-mean)/deviation), below((a.hi-mean)/deviation)
		u = (below((x-mean)/deviation) - from) / (to - from)
	case LogUniform:
		u = part(a.lo, a.hi, math.Log(x))
	case ReverseLogUniform:
		u = 1 - part(a.lo, a.hi, math.Log(math.Max(a.Min+(a.top-x), math.Exp(a.lo))))
	default:
		u = part(a.lo, a.hi, x)
	}
	if math.IsNaN(u) {
		return 0.5 // the distribution is a single number as far as float64 can tell
	}
	return math.Min(math.Max(u, 0), 1)
}
