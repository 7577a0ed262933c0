// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"diwan.dev/diwan/internal/platform/node/container"
)

// Usage adds up processes. CPU time of children that have ended is counted once their
// parent has waited for them.
func Usage(pids []int) container.Usage {
	var sum container.Usage
	for _, pid := range pids {
		cpu, memory, ok := usageOf(pid)
		if ok {
			sum.CPU += cpu
			sum.Memory += memory
		}
	}
	return sum
}

// usageOf reads /proc/<pid>/stat: fields 14 to 17 are ticks of 10 ms in user and
// kernel mode, own and of waited-for children; field 24 is resident pages.
func usageOf(pid int) (cpu time.Duration, memory uint64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	_, rest, found := strings.Cut(string(text), ") ") // after the name, field 3 follows
	fields := strings.Fields(rest)
	if !found || len(fields) < 22 {
		return 0, 0, false
	}
	for _, f := range fields[11:15] {
		ticks, _ := strconv.ParseInt(f, 10, 64)
		cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	pages, _ := strconv.ParseUint(fields[21], 10, 64)
	return cpu, pages * uint64(os.Getpagesize()), true
}
