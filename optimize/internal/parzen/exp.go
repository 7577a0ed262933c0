// SPDX-License-Identifier: Apache-2.0

package parzen

import "math"

// The exponential function is most of the cost of a suggestion, so this one is
// faster than the library's: a power of two, times a part of one from a table,
// times a polynomial for the rest. It errs by a part in 10¹⁰ at most.
const (
	expReach = 23 // it is for numbers from -expReach to 0
	expParts = 64
)

// expTable holds 2^(i/expParts). It is not changed.
var expTable = func() (t [expParts]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / expParts)
	}
	return t
}()

func exp(x float64) float64 {
	n := int(x*(expParts/math.Ln2) - 0.5) // rounded to the nearest
	r := x - float64(n)*(math.Ln2/expParts)
	power := math.Float64frombits(uint64(n>>6+1023) << 52)
	return power * expTable[n&(expParts-1)] * (1 + r*(1+r*(0.5+r*(1.0/6))))
}
