// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Kernel is how the values at two inputs vary together:
//
//	k(x, y) = Scale·(1 + √5 r + 5/3 r²)·exp(−√5 r) + Trend·(1 + ⟨x−½, y−½⟩)²
//
// where r is the distance of x and y, and both it and the product are taken
// after dividing each feature by the length of its group. The first term is
// Matérn's with smoothness 5/2 (Rasmussen and Williams 2006, equation 4.17); the second
// is the prior of a quadratic function, which catches the bowl that most
// objectives have as a whole.
type Kernel struct {
	Lengths []float64 // one for each group, positive
	Scale   float64   // variance of the Matérn part
	Trend   float64   // variance of the quadratic part, 0 for none
	Noise   float64   // variance of an observation around the function
}

// scaler divides features by the length of their group.
type scaler struct {
	groups  []int
	inverse []float64 // 1/length for each feature
}

func newScaler(groups []int, lengths []float64) scaler {
	s := scaler{groups, make([]float64, len(groups))}
	for i, g := range groups {
		s.inverse[i] = 1 / lengths[g]
	}
	return s
}

// scale writes (x − ½)/length to into.
func (s scaler) scale(x, into []float64) {
	for i, v := range x {
		into[i] = (v - 0.5) * s.inverse[i]
	}
}

// matern returns the kernel of unit variance at the squared distance r2, and
// minus twice its derivative by r2.
func matern(r2 float64) (value, slope float64) {
	a := math.Sqrt(5 * r2)
	e := math.Exp(-a)
	return (1 + a + a*a/3) * e, 5.0 / 3 * (1 + a) * e
}

// between returns the covariance of two scaled inputs.
func (k *Kernel) between(a, b []float64) float64 {
	r2 := 0.0
	for i, v := range a {
		d := v - b[i]
		r2 += d * d
	}
	value, _ := matern(r2)
	value *= k.Scale
	if k.Trend > 0 {
		p := 1 + floats.Dot(a, b)
		value += k.Trend * p * p
	}
	return value
}

// variance returns the variance of the function at a scaled input.
func (k *Kernel) variance(a []float64) float64 {
	if k.Trend == 0 {
		return k.Scale
	}
	p := 1 + floats.Dot(a, a)
	return k.Scale + k.Trend*p*p
}
