// SPDX-License-Identifier: Apache-2.0

// Package python holds the Python packages. It has no Go code of its own: its test runs theirs.
package python

import (
	"os"
	"os/exec"
	"testing"
)

func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("python3 is not installed")
		}
		t.Skip("python3 is not installed")
	}
	command := exec.CommandContext(t.Context(), python, "-W", "error", "-m", "unittest", "discover", "-s", "tests")
	command.Env = append(os.Environ(), "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
