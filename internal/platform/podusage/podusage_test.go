// SPDX-License-Identifier: Apache-2.0

package podusage

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		value  string
		cpu    time.Duration
		peak   int64
		ok     bool
	}{
		"both":       {"what Of writes is read", Of(1500*time.Millisecond, 12<<20).String(), 1500 * time.Millisecond, 12 << 20, true},
		"no memory":  {"memory may be unknown", Of(time.Second, 0).String(), time.Second, 0, true},
		"bad memory": {"or not well-formed", `{"cpuTime":"1s","peakMemory":"much"}`, time.Second, 0, true},
		"nothing":    {"a Pod of another node", "", 0, 0, false},
		"bad time":   {"users can write it, too", `{"cpuTime":"-1s"}`, 0, 0, false},
		"a word":     {"or anything", "long", 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if cpu, peak, ok := Parse(c.value); cpu != c.cpu || peak != c.peak || ok != c.ok {
				t.Errorf("%s: %s, %d, %t; want %s, %d, %t", c.reason, cpu, peak, ok, c.cpu, c.peak, c.ok)
			}
		})
	}
}
