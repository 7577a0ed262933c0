// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestLoopbackDown starts Diwan where the loopback interface is down, as in a new
// network namespace: it says so, and starts nothing that waits for it.
func TestLoopbackDown(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has network namespaces without a user namespace")
	}
	cmd := exec.CommandContext(t.Context(), binary, "up", "--home", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "ip link set lo up") || strings.Contains(string(out), "starting") {
		t.Errorf("got %v, want the loopback interface and its remedy named, before anything starts:\n%s", err, out)
	}
}
