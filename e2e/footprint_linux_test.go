// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diwan.dev/diwan/internal/platform/node/cgroup"
)

// TestFootprint runs Diwan on a copy of this machine's file system, kills it, starts
// it again and stops it, with Pods that mount where the machine has nothing. Then
// only the home has changed: no file elsewhere, network device or cgroup is
// left.
func TestFootprint(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a copy of the file system")
	}
	script, err := filepath.Abs("testdata/footprint.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Base(filepath.Dir(dir)) // of this test alone
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", script, dir, binary, name)
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot run Diwan on a copy of the file system: %v\n%s", err, &told)
	}
	for line := range strings.Lines(string(out)) {
		t.Errorf("Diwan leaves %s", strings.TrimSpace(line))
	}
	group := cgroup.Name(filepath.Join("/mnt", name, "node", "pods"))
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == group {
			t.Errorf("Diwan leaves the control group %s", path)
		}
		return nil
	})
}
