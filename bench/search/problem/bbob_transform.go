// SPDX-License-Identifier: Apache-2.0

package problem

import "math"

// part returns i/(d-1), the position of coordinate i among d.
func part(i, d int) float64 { return float64(i) / float64(d-1) }

// oscillated is T_osz of RR-6829 for one number: smooth ripples around the
// identity.
func oscillated(x float64) float64 {
	if x == 0 {
		return 0
	}
	c1, c2 := 1.0, 0.79
	if x < 0 {
		c1, c2 = 0.55, 0.31
	}
	t := math.Log(math.Abs(x)) / 0.1
	return math.Copysign(math.Pow(math.Exp(t+0.49*(math.Sin(c1*t)+math.Sin(c2*t))), 0.1), x)
}

// oscillate applies T_osz to each coordinate, in place.
func oscillate(x []float64) []float64 {
	for i := range x {
		x[i] = oscillated(x[i])
	}
	return x
}

// asymmetric applies T_asy with the exponent beta, in place: what is positive
// grows, the more the later the coordinate.
func asymmetric(x []float64, beta float64) []float64 {
	for i, v := range x {
		if v > 0 {
			x[i] = math.Pow(v, 1+beta*part(i, len(x))*math.Sqrt(v))
		}
	}
	return x
}

// condition applies the diagonal matrix Λ^alpha in place, whose entries grow
// from 1 to the square root of alpha.
func condition(x []float64, alpha float64) []float64 {
	for i := range x {
		x[i] *= math.Pow(alpha, part(i, len(x))/2)
	}
	return x
}

// minus returns the difference of two vectors.
func minus(x, y []float64) []float64 {
	z := make([]float64, len(x))
	for i := range x {
		z[i] = x[i] - y[i]
	}
	return z
}

// sum adds up a function over coordinates.
func sum(x []float64, f func(i int, v float64) float64) (total float64) {
	for i, v := range x {
		total += f(i, v)
	}
	return total
}
