// SPDX-License-Identifier: Apache-2.0

package localcluster

import "testing"

func TestBusyPercent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		live   uint64
		want   int
	}{
		{"a heap that was never collected has the widest bound", 0, busyMost},
		{"a small heap may grow to a multiple", 50 << 20, busyMost},
		{"in between the growth is the same number of bytes", 500 << 20, 100},
		{"a large heap still grows by a share, or collecting would never end", 4 << 30, busyLeast},
	} {
		if got := busyPercent(tc.live); got != tc.want {
			t.Errorf("%s: busyPercent(%d) = %d, want %d", tc.reason, tc.live, got, tc.want)
		}
	}
}
