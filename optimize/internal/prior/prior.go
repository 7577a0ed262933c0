// SPDX-License-Identifier: Apache-2.0

// Package prior is the distributions of parameters' values before a search, each
// truncated at bounds: uniform and normal ones, those of a logarithm, and the
// reverse of a log-uniform one.
package prior

import "math"

// Distribution is a truncated distribution of numbers.
type Distribution interface {
	// Quantile returns the number below which lies the part u, from 0 to 1.
	Quantile(u float64) float64
	// Cumulate is the inverse of Quantile; it is not limited to 0 and 1, and not a
	// number where the distribution is a single one as far as float64 can tell.
	Cumulate(x float64) float64
	// First returns the number at which it begins.
	First() float64
}

// Uniform is the uniform distribution from Lo to Hi.
type Uniform struct{ Lo, Hi float64 }

// Quantile implements [Distribution].
func (d Uniform) Quantile(u float64) float64 {
	if width := d.Hi - d.Lo; !math.IsInf(width, 0) {
		return d.Lo + u*width
	}
	return d.Lo*(1-u) + d.Hi*u // which does not overflow, but may fall by a rounding
}

// Cumulate implements [Distribution].
func (d Uniform) Cumulate(x float64) float64 {
	return (x/2 - d.Lo/2) / (d.Hi/2 - d.Lo/2) // halves do not overflow
}

// First implements [Distribution].
func (d Uniform) First() float64 { return d.Lo }

// Normal is a normal distribution truncated at Lo and Hi.
type Normal struct{ Lo, Hi, Mean, Deviation float64 }

// Quantile implements [Distribution].
func (d Normal) Quantile(u float64) float64 {
	if d.Deviation == 0 {
		return d.Mean
	}
	from, to := d.below(d.Lo), d.below(d.Hi)
	return d.Mean - d.Deviation*math.Sqrt2*math.Erfcinv(2*(from+u*(to-from)))
}

// Cumulate implements [Distribution].
func (d Normal) Cumulate(x float64) float64 {
	from, to := d.below(d.Lo), d.below(d.Hi)
	return (d.below(x) - from) / (to - from)
}

// First implements [Distribution].
func (d Normal) First() float64 { return d.Lo }

// below returns the part of the distribution below a number, if it had no bounds.
func (d Normal) below(x float64) float64 {
	return math.Erfc(-(x-d.Mean)/d.Deviation/math.Sqrt2) / 2
}

// Logarithmic is a distribution whose logarithm has another.
type Logarithmic struct{ Of Distribution }

// Quantile implements [Distribution].
func (d Logarithmic) Quantile(u float64) float64 { return math.Exp(d.Of.Quantile(u)) }

// Cumulate implements [Distribution].
func (d Logarithmic) Cumulate(x float64) float64 { return d.Of.Cumulate(math.Log(x)) }

// First implements [Distribution].
func (d Logarithmic) First() float64 { return math.Exp(d.Of.First()) }

// Reverse is the distribution of Min + Max less a number whose logarithm is
// uniform.
type Reverse struct {
	Logarithm Uniform
	Min, Max  float64
}

// Quantile implements [Distribution].
func (d Reverse) Quantile(u float64) float64 {
	return d.Min + (d.Max - math.Exp(d.Logarithm.Quantile(1-u)))
}

// Cumulate implements [Distribution].
func (d Reverse) Cumulate(x float64) float64 {
	return 1 - d.Logarithm.Cumulate(math.Log(math.Max(d.Min+(d.Max-x), math.Exp(d.Logarithm.Lo))))
}

// First implements [Distribution].
func (d Reverse) First() float64 { return d.Min + (d.Max - math.Exp(d.Logarithm.Hi)) }
