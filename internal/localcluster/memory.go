// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector takes a seventh of the processor under load when the
// heap may only double, and at rest a heap that may grow wastes memory. So the
// bound follows the work: while the process allocates quickly the heap may grow
// by busyGrowth beyond what lives, whatever that is, and when it comes to rest
// the bound is narrow and what is free goes back to the system.
const (
	busyAllocation = 20 << 20  // bytes a second
	busyGrowth     = 500 << 20 // bytes
	busyLeast      = 75        // percent
	busyMost       = 300       // percent
	restGrowth     = 75        // percent
	memoryCheck    = time.Second
	restAfter      = 5 // checks without work
)

// busyPercent is the collector's target for a heap of which live bytes live.
func busyPercent(live uint64) int {
	return int(min(max(busyGrowth*100/max(live, 1), busyLeast), busyMost))
}

// paceMemory sets the garbage collector's target until ctx ends.
func paceMemory(ctx context.Context) {
	defer debug.SetGCPercent(debug.SetGCPercent(restGrowth))
	debug.FreeOSMemory()
	ticker := time.NewTicker(memoryCheck)
	defer ticker.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	last, quiet := sample[0].Value.Uint64(), restAfter
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(sample)
		allocated := sample[0].Value.Uint64()
		busy := allocated-last > busyAllocation
		last = allocated
		switch {
		case busy:
			debug.SetGCPercent(busyPercent(sample[1].Value.Uint64()))
			quiet = 0
		case quiet < restAfter:
			if quiet++; quiet == restAfter {
				debug.SetGCPercent(restGrowth)
				debug.FreeOSMemory()
			}
		}
	}
}
