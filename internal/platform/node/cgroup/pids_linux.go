// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// DefaultPIDs is how many processes and threads a container may have, so that none keeps
// the machine from making others: 15 % of what the kernel allows, as systemd gives a service
// (TasksMax), and no more than half of what this process's own cgroup is allowed.
func DefaultPIDs() int64 {
	const share, least = 15, 256
	limit := int64(math.MaxInt64)
	for _, name := range []string{"pid_max", "threads-max"} {
		if n, ok := readNumber(filepath.Join("/proc/sys/kernel", name)); ok {
			limit = min(limit, max(n*share/100, least))
		}
	}
	own := ownGroups()
	for _, dir := range []string{
		filepath.Join("/sys/fs/cgroup", own[""]), filepath.Join("/sys/fs/cgroup/unified", own[""]), filepath.Join("/sys/fs/cgroup/pids", own["pids"]),
	} {
		if n, ok := readNumber(filepath.Join(dir, "pids.max")); ok {
			limit = min(limit, max(n/2, 1))
		}
	}
	if limit == math.MaxInt64 {
		return 0 // the kernel tells nothing
	}
	return limit
}

// readNumber reads a file with a number; "max" is none.
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n > 0
}

// limitPIDs bounds the processes and threads of a run.
func limitPIDs(dir string, l int64) error {
	if dir == "" {
		return errNoGroup
	}
	return write(dir, "pids.max", strconv.FormatInt(l, 10))
}
