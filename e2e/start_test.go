// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestInterruptedStart interrupts `diwan up` in the middle of its start: it ends as
// any command that was interrupted, and shows no stack trace.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, step := range []string{"starting etcd", "starting the API server", "installing resources", "starting the node"} {
		cmd := exec.CommandContext(t.Context(), binary, "up", "--home", home)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		lines, interrupted := bufio.NewScanner(stderr), false
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if !interrupted && strings.Contains(lines.Text(), step) {
				interrupted = true
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); !interrupted || code != 130 && code != 0 {
			t.Errorf("%s: exit code %d, want 130, or 0 where the start was over:\n%s", step, code, said.String())
		}
		if strings.Contains(said.String(), "goroutine ") {
			t.Errorf("%s: a stack trace:\n%s", step, said.String())
		}
	}
}
