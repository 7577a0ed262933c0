// SPDX-License-Identifier: Apache-2.0

package prior

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestInverse checks that Cumulate is the inverse of Quantile, and that each
// distribution begins where it says.
func TestInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lo := rapid.Float64Range(0.1, 10).Draw(rt, "lo")
		hi := lo + rapid.Float64Range(0.1, 10).Draw(rt, "range")
		normal := Normal{Lo: lo, Hi: hi, Mean: rapid.Float64Range(lo, hi).Draw(rt, "mean"), Deviation: rapid.Float64Range((hi-lo)/6, 10).Draw(rt, "deviation")}
		u := rapid.Float64Range(0, 1).Draw(rt, "u")
		for _, d := range []Distribution{
			Uniform{lo, hi}, normal, Logarithmic{Uniform{lo, hi}}, Logarithmic{normal},
			Reverse{Logarithm: Uniform{math.Log(lo), math.Log(hi)}, Min: lo, Max: hi},
		} {
			if got := d.Cumulate(d.Quantile(u)); math.Abs(got-u) > 1e-6 {
				rt.Errorf("%#v: Cumulate(Quantile(%v)) = %v", d, u, got)
			}
			if first, want := d.Quantile(0), d.First(); math.Abs(first-want) > 1e-6*want {
				rt.Errorf("%#v: begins at %v, First() = %v", d, first, want)
			}
		}
	})
}
