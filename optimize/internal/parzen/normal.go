// SPDX-License-Identifier: Apache-2.0

package parzen

import "math"

// The distribution function of the standard normal distribution is read from a
// table by cubic interpolation, which errs by less than 1e-12: the kernels of
// a suggestion need it thousands of times.
const (
	tableEnd  = 8.5 // beyond which it is 0 or 1 to float64's precision
	tableStep = 1.0 / 256
	tableLen  = int(tableEnd/tableStep) + 2
)

// normalTable holds at each step the function's value and, in units of the
// step, its slope. It is not changed.
var normalTable = func() (t [tableLen][2]float64) {
	for i := range t {
		x := float64(i) * tableStep
		t[i] = [2]float64{math.Erfc(-x/math.Sqrt2) / 2, tableStep * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)}
	}
	return t
}()

// below returns the part of the standard normal distribution below x.
func below(x float64) float64 {
	if x < 0 {
		return 1 - below(-x)
	}
	if !(x < tableEnd) {
		return 1
	}
	at := x / tableStep
	i := int(at)
	t := at - float64(i)
	a, b := &normalTable[i], &normalTable[i+1]
	rise := b[0] - a[0]
	return a[0] + t*(a[1]+t*(3*rise-2*a[1]-b[1]+t*(a[1]+b[1]-2*rise)))
}

// within returns the part of a normal distribution from lo to hi.
func within(mean, inverse, lo, hi float64) float64 {
	a, b := (lo-mean)*inverse, (hi-mean)*inverse
	if a > 0 { // the other tail has the digits
		a, b = -b, -a
	}
	return below(b) - below(a)
}

// truncated returns the number below which lies the part u of the normal
// distribution that is cut off at lo and hi.
func truncated(mean, deviation, lo, hi, u float64) float64 {
	a, b := (lo-mean)/deviation, (hi-mean)/deviation
	mirrored := a > 0
	if mirrored {
		a, b, u = -b, -a, 1-u
	}
	from, to := math.Erfc(-a/math.Sqrt2)/2, math.Erfc(-b/math.Sqrt2)/2
	z := b // far out in the tail there is but the end nearest to the mean
	if p := from + u*(to-from); p > 0 {
		z = math.Min(math.Max(-math.Sqrt2*math.Erfcinv(2*p), a), b)
	}
	if mirrored {
		z = -z
	}
	return math.Min(math.Max(mean+deviation*z, lo), hi)
}
