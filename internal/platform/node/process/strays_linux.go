// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// killMarked kills the processes that carry the run's marker in their
// environment, and tells whether there were any.
func killMarked(id container.ID, _ int) bool {
	found := false
	for _, pid := range marked(id) {
		found = true
		unix.Kill(pid, unix.SIGKILL)
	}
	return found
}

// marked finds the processes that carry the run's marker. A zombie has no
// environment any more, so it is not found.
func marked(id container.ID) []int {
	want := append([]byte(marker(id)), 0)
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil {
			continue
		}
		if i := bytes.Index(env, want); i == 0 || i > 0 && env[i-1] == 0 {
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
