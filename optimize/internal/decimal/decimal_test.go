// SPDX-License-Identifier: Apache-2.0

package decimal

import (
	"math"
	"testing"
)

func TestDecimal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		number float64
		text   string
		digits int
	}{
		{0, "0", 0}, {math.Copysign(0, -1), "0", 0}, {0.1, "0.1", 1}, {-12.25, "-12.25", 2}, {300, "300", 0},
		{1e-5, "0.00001", 5}, {1.5e-7, "1.5e-07", 8}, {9e15, "9000000000000000", 0}, {1e16, "1e+16", 0},
	} {
		if got := Format(tc.number); got != tc.text {
			t.Errorf("Format(%v) = %q, want %q", tc.number, got, tc.text)
		}
		if got := Digits(tc.number); got != tc.digits {
			t.Errorf("Digits(%v) = %d, want %d", tc.number, got, tc.digits)
		}
		if got := Round(tc.number, tc.digits); got != tc.number {
			t.Errorf("Round(%v, %d) = %v", tc.number, tc.digits, got)
		}
	}
	if got := Round(0.1+2*0.1, 1); got != 0.3 {
		t.Errorf("0.1 + 2·0.1 rounded to a digit is %v, want 0.3", got)
	}
}
