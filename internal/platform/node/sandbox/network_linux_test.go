// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/thread"
)

// TestNetwork runs a container in a network namespace, with its own /sys/class/net, and a
// command beside it.
func TestNetwork(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	var space *os.File
	err := thread.Run(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		space, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	spec := specFor(t, "sh", "-c", "readlink /proc/self/ns/net; ls /sys/class/net; cat /proc/sys/net/ipv4/ip_unprivileged_port_start; echo up; sleep 1000")
	spec.Netns = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd())
	spec.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	run := start(t, r, spec)
	text := awaitText(t, spec.Log, "up\n")
	name, rest, _ := strings.Cut(text, "\n")
	if to, err := os.Readlink(spec.Netns); err != nil || name != to || rest != "lo\n0\nup\n" {
		t.Errorf("got %q, want the namespace %s, %v", text, to, err)
	}
	if out, err := execute(t, run, "readlink", "/proc/self/ns/net"); err != nil || out != name+"\n" {
		t.Errorf("a command beside is in %q, %v", out, err)
	}
}
