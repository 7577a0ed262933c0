// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/node/container"
)

func TestUsedBy(t *testing.T) {
	const mi = 1 << 20
	ran := func(exits ...container.Exit) used {
		var u used
		for _, exit := range exits {
			u.add(exit)
		}
		return u
	}
	for name, c := range map[string]struct {
		reason, scene string
		used          map[string]used
		want          string
	}{
		"running": {"what runs has not told yet", "a:ready", nil, ""},
		"one":     {"a container", "a:0", map[string]used{"a": ran(container.Exit{CPU: 1500 * time.Millisecond, PeakMemory: 12 * mi})}, `{"cpuTime":"1.5s","peakMemory":"12Mi"}`},
		"unknown": {"memory that nobody measured", "a:0", map[string]used{"a": ran(container.Exit{CPU: time.Second})}, `{"cpuTime":"1s"}`},
		"again": {"runs one after another add time, and not memory", "a:0",
			map[string]used{"a": ran(container.Exit{CPU: time.Second, PeakMemory: 3 * mi}, container.Exit{CPU: time.Second, PeakMemory: 2 * mi})}, `{"cpuTime":"2s","peakMemory":"3Mi"}`},
		"beside": {"main containers and sidecars run together", "s*:0 | a:0 b:0",
			map[string]used{"s": ran(container.Exit{PeakMemory: mi}), "a": ran(container.Exit{PeakMemory: 2 * mi}), "b": ran(container.Exit{PeakMemory: 4 * mi})}, `{"cpuTime":"0s","peakMemory":"7Mi"}`},
		"init": {"init containers do not", "i:0 j:0 | a:0",
			map[string]used{"i": ran(container.Exit{PeakMemory: 8 * mi}), "j": ran(container.Exit{PeakMemory: mi}), "a": ran(container.Exit{PeakMemory: 2 * mi})}, `{"cpuTime":"0s","peakMemory":"8Mi"}`},
	} {
		t.Run(name, func(t *testing.T) {
			pod, _ := scene(t, c.scene)
			if got := usedBy(pod, func(name string) used { return c.used[name] }); got != c.want {
				t.Errorf("%s: %s, want %s", c.reason, got, c.want)
			}
		})
	}
}
