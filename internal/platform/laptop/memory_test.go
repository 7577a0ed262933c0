// SPDX-License-Identifier: Apache-2.0

package laptop

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
		{"in between the growth is the same number of bytes", busyGrowth, 100},
		{"a large heap still grows by a share, or collecting would never end", 4 << 30, busyLeast},
	} {
		if got := busyPercent(tc.live); got != tc.want {
			t.Errorf("%s: busyPercent(%d) = %d, want %d", tc.reason, tc.live, got, tc.want)
		}
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	const work, rest, live = busyAllocation + 1, busyAllocation, busyGrowth
	type step struct {
		allocated uint64
		percent   int
		free      bool
	}
	for _, tc := range []struct {
		reason string
		steps  []step
	}{
		{"a moment's work, such as one large manifest, does not widen the bound, and its garbage is given back",
			[]step{{work, 0, false}, {work, 0, false}, {rest, 0, false}, {rest, 0, false}, {rest, 0, false}, {rest, 0, false}, {rest, restGrowth, true}, {rest, 0, false}}},
		{"work that lasts widens it for as long as it lasts",
			[]step{{work, 0, false}, {work, 0, false}, {work, 100, false}, {work, 100, false}, {rest, 0, false}, {work, 0, false}, {work, 0, false}, {work, 100, false}}},
		{"a cluster at rest is left alone", []step{{rest, 0, false}, {rest, 0, false}}},
	} {
		p := pace{quiet: restAfter}
		for i, s := range tc.steps {
			if percent, free := p.next(s.allocated, live); percent != s.percent || free != s.free {
				t.Errorf("%s: step %d: next(%d) = %d, %t; want %d, %t", tc.reason, i, s.allocated, percent, free, s.percent, s.free)
			}
		}
	}
}
