// SPDX-License-Identifier: Apache-2.0

package acquisition

import "math"

const (
	logRoot2Pi = 0.91893853320467274178032973640562 // log √(2π)
	// series is how many deviations out asymptotic series replace the error
	// function: there the terms left out are below rounding.
	series = 25
)

// logCumulative returns log Φ(z).
func logCumulative(z float64) float64 {
	if z < -series {
		s := 1 / (z * z)
		return -z*z/2 - logRoot2Pi - math.Log(-z) + math.Log1p(-s*(1-s*(3-s*(15-s*(105-s*945)))))
	}
	if z > 5 {
		return math.Log1p(-math.Erfc(z/math.Sqrt2) / 2)
	}
	return math.Log(math.Erfc(-z/math.Sqrt2) / 2)
}

// logH returns log h(z), where h(z) = φ(z) + z·Φ(z), and its derivative
// Φ(z)/h(z).
func logH(z float64) (value, slope float64) {
	switch {
	case z > -1:
		density := math.Exp(-z*z/2 - logRoot2Pi)
		cumulative := math.Erfc(-z/math.Sqrt2) / 2
		h := density + z*cumulative
		return math.Log(h), cumulative / h
	case z > -series:
		// h = φ·(1 − |z|·m) with Mills' ratio m = Φ(z)/φ(z).
		mills := math.Erfc(-z/math.Sqrt2) / 2 * math.Exp(z*z/2+logRoot2Pi)
		rest := 1 + z*mills
		return -z*z/2 - logRoot2Pi + math.Log(rest), mills / rest
	case z < -1e150:
		return math.Inf(-1), -z
	}
	s := 1 / (z * z)
	rest := 1 - s*(3-s*(15-s*(105-s*945))) // of h·z²/φ
	mills := 1 - s*(1-s*(3-s*(15-s*105)))  // of Φ·|z|/φ
	return -z*z/2 - logRoot2Pi - 2*math.Log(-z) + math.Log(rest), -z * mills / rest
}
