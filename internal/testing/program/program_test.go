// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"os/exec"
	"testing"
)

// TestBuild builds what other tests start, once: a second call finds it built.
func TestBuild(t *testing.T) {
	t.Parallel()
	for dir, args := range map[string][]string{"cmd/diwan": {"version"}, "internal/testing/processcluster/kube": {"kube-apiserver", "--version"}} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			path, err := Build(dir)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
				t.Errorf("%s %v: %v\n%s", path, args, err, out)
			}
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if path, err = Build(dir); err != nil {
				t.Fatal(err)
			}
			after, err := os.Stat(path)
			if err != nil || !os.SameFile(before, after) {
				t.Errorf("%s is linked again: %v", dir, err)
			}
		})
	}
}
