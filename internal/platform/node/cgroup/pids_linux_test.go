// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diwan.dev/diwan/internal/platform/node/container"
)

func TestPIDs(t *testing.T) {
	t.Parallel()
	if n := DefaultPIDs(); n < 1 || n > 1<<22 {
		t.Errorf("a container may have %d processes", n)
	}
	g := Open(t.TempDir())
	t.Cleanup(g.Close)
	dirs, warnings := g.Create(container.ID{Pod: "pod", Name: "main"}, container.Limits{PIDs: 123})
	t.Cleanup(func() { g.Remove(dirs) })
	if len(warnings) > 0 {
		t.Errorf("what nobody asked for is warned of: %q", warnings)
	}
	held := func() (limits []string) {
		for _, dir := range dirs {
			if text, err := os.ReadFile(filepath.Join(dir, "pids.max")); err == nil {
				limits = append(limits, strings.TrimSpace(string(text)))
			}
		}
		return limits
	}
	limits := held()
	if len(limits) == 0 {
		t.Skip("this machine lets this user bound no processes")
	}
	if len(limits) != 1 || limits[0] != "123" {
		t.Errorf("the limits are %q", limits)
	}
	g.Kill(dirs)
	if limits := held(); limits[0] != "0" {
		t.Errorf("what is being killed may make %s processes", limits[0])
	}
}
