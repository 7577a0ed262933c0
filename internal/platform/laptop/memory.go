// SPDX-License-Identifier: Apache-2.0

package laptop

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
// the bound is narrow and what is free goes back to the system. Work is what
// lasts: one large manifest allocates as quickly, for a moment, and with the wide
// bound it would leave hundreds of MiB of garbage. A start, which allocates most
// of its memory to keep it, would spend a quarter of its time on collections.
const (
	startGrowth    = 300       // percent
	busyAllocation = 20 << 20  // bytes a second
	busyGrowth     = 250 << 20 // bytes
	busyLeast      = 75        // percent
	busyMost       = 300       // percent
	restGrowth     = 75        // percent
	memoryCheck    = time.Second
	busyAfter      = 3 // checks with work, one after another
	restAfter      = 5 // checks without work
)

// busyPercent is the collector's target for a heap of which live bytes live.
func busyPercent(live uint64) int {
	return int(min(max(busyGrowth*100/max(live, 1), busyLeast), busyMost))
}

// paceMemory sets the garbage collector's target until ctx ends.
func paceMemory(ctx context.Context) {
	debug.SetGCPercent(restGrowth)
	debug.FreeOSMemory()
	ticker := time.NewTicker(memoryCheck)
	defer ticker.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	last, p := sample[0].Value.Uint64(), pace{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(sample)
		allocated := sample[0].Value.Uint64()
		percent, free := p.next(allocated-last, sample[1].Value.Uint64())
		last = allocated
		if percent > 0 {
			debug.SetGCPercent(percent)
		}
		if free {
			debug.FreeOSMemory()
		}
	}
}

// pace is how many checks in a row found work, and how many none.
type pace struct{ busy, quiet int }

// next takes what was allocated since the last check, and what lives. It returns
// the collector's new target, 0 if the old one stays, and whether what is free is
// to be given back.
func (p *pace) next(allocated, live uint64) (percent int, free bool) {
	if allocated > busyAllocation {
		p.busy++
		p.quiet = 0
		if p.busy >= busyAfter {
			percent = busyPercent(live)
		}
		return percent, false
	}
	p.busy = 0
	if p.quiet < restAfter {
		if p.quiet++; p.quiet == restAfter {
			return restGrowth, true
		}
	}
	return 0, false
}
