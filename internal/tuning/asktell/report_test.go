// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestInstant checks that a lease's reports keep their order when the clock does
// not.
func TestInstant(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(begin)
	config := DefaultConfig()
	config.Clock = clock
	s := New(config)
	for i, c := range []struct {
		reason    string
		lease     string
		now, want time.Duration
	}{
		{"the first", "a", 0, 0},
		{"a later one", "a", time.Second, time.Second},
		{"the clock is set back", "a", -time.Hour, time.Second},
		{"another lease has reported nothing", "b", -time.Hour, -time.Hour},
		{"the clock is set right", "a", 2 * time.Second, 2 * time.Second},
	} {
		clock.SetTime(begin.Add(c.now))
		if got := s.instant(c.lease); !got.Equal(begin.Add(c.want)) {
			t.Errorf("report %d has the time %s, want %s: %s", i, got, begin.Add(c.want), c.reason)
		}
	}
}
