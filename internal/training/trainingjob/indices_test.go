// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestIndices holds that what is written is read again, whatever it is.
func TestIndices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 20, rapid.ID).Draw(t, "indices")
		slices.Sort(want)
		text := formatIndices(want)
		if got := parseIndices(text, 31); !slices.Equal(got, want) {
			t.Errorf("%v is written %q and read as %v", want, text, got)
		}
	})
}

// FuzzParseIndices reads what a status may say that somebody else wrote.
func FuzzParseIndices(f *testing.F) {
	for _, seed := range []string{"", "0", "0-2,5", "0-9999999999999999999", "-1", "3-1", "a-b,,", "0-2147483647,0-2147483647"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const n = 20
		for _, i := range parseIndices(text, n) {
			if i < 0 || i >= n {
				t.Errorf("%q has index %d, of %d", text, i, n)
			}
		}
	})
}
