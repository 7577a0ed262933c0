// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"diwan.dev/diwan/internal/platform/node/rootless"
)

// TestNoFreePort starts in a network of its own that has as many ports as it
// says, and no other.
func TestNoFreePort(t *testing.T) {
	t.Parallel()
	if !rootless.Root() {
		t.Skip("this test makes a network")
	}
	for _, ports := range []string{"50000 50000", "50000 50001"} {
		const script = `ip link set lo up && echo "$1" > /proc/sys/net/ipv4/ip_local_port_range && exec "$2" up --home "$3"`
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", ports, binary, t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		out, err := cmd.CombinedOutput()
		said := string(out)
		if err == nil || !strings.Contains(said, "error: cannot") || !strings.Contains(said, "no port of 127.0.0.1 is free") || strings.Contains(said, "goroutine") {
			t.Errorf("with the ports %s diwan up ended with %v and said:\n%s", ports, err, said)
		}
	}
}
