// SPDX-License-Identifier: Apache-2.0

// Package decimal has the arithmetic of numbers as people write them: in decimal,
// with the fewest digits.
package decimal

import (
	"math"
	"strconv"
	"strings"
)

// Format writes a number with the fewest digits that read back as the
// same, with an exponent only where it is very large or very small.
func Format(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0" // and not -0
	case size < 1e-5 || size >= 1e16:
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Digits returns how many digits after the point a number needs.
func Digits(v float64) int {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent) // FormatFloat writes one
	return max(0, len(fraction)-e)
}

// Round rounds a number to so many digits after the point.
func Round(v float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', digits, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}
