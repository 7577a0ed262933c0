// SPDX-License-Identifier: Apache-2.0

package runstate

import (
	"strings"
	"testing"
)

func FuzzReport(f *testing.F) {
	for _, s := range []string{"", "1", "12\n", "12\n0", "12\n137\n", "x\n1\n", "\n\n", "12\n-1\n", "12\n999\n", "0\n0\n", "12 34\n5\n", "12 x\n5\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r Report
		r.parse(text)
		if r.Ended && (r.PID == 0 || r.Code < 0 || r.Code > 255 || strings.Count(text, "\n") < 2) {
			t.Errorf("%q reads as %+v", text, r)
		}
	})
}
