// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/cli/progress"
	"diwan.dev/diwan/internal/platform/laptop"
)

// TestLogOf finds the log of whom the metric is from, though others wrote later.
func TestLogOf(t *testing.T) {
	t.Parallel()
	trial := func(replica, container string) wanted {
		return reporter("ns", &progress.Trial{Name: "t", Replica: replica, Container: container})
	}
	for _, c := range []struct {
		reason string
		files  []string // the later the newer
		wanted wanted
		want   string
	}{
		{"the master of a job", []string{"t-master-0/pytorch/0.log", "t-worker-0/pytorch/0.log"}, trial("", "pytorch"), "t-master-0/pytorch/0.log"},
		{"the chief", []string{"t-chief-0/tensorflow/0.log", "t-worker-0/tensorflow/0.log"}, trial("", ""), "t-chief-0/tensorflow/0.log"},
		{"the launcher", []string{"t-launcher-abcde/mpi/0.log", "t-worker-0/mpi/0.log"}, trial("", ""), "t-launcher-abcde/mpi/0.log"},
		{"the first node of a TrainJob", []string{"t-node-0-0-abcde/node/0.log", "t-node-0-1-abcde/node/0.log"}, trial("", "node"), "t-node-0-0-abcde/node/0.log"},
		{"the first of workers without a master", []string{"t-worker-0/m/0.log", "t-worker-10/m/0.log", "t-ps-0/m/0.log"}, trial("", ""), "t-worker-0/m/0.log"},
		{"the replica that the trial names", []string{"t-worker-1/m/0.log", "t-master-0/m/0.log", "t-worker-11/m/0.log"}, trial("worker-1", ""), "t-worker-1/m/0.log"},
		{"the primary container", []string{"t-abcde/main/0.log", "t-abcde/sidecar/0.log"}, trial("", "main"), "t-abcde/main/0.log"},
		{"the last run of it", []string{"t-abcde/main/0.log", "t-abcde/main/1.log"}, trial("", "main"), "t-abcde/main/1.log"},
		{"another one where it wrote nothing", []string{"t-abcde/sidecar/0.log"}, trial("", "main"), "t-abcde/sidecar/0.log"},
		{"of what failed, the one that wrote last", []string{"t-master-0/m/0.log", "t-worker-0/m/0.log"}, wanted{namespace: "ns", name: "t"}, "t-worker-0/m/0.log"},
		{"not that of another job", []string{"t-abcde/main/0.log", "tt-abcde/main/0.log"}, trial("", ""), "t-abcde/main/0.log"},
		{"nothing of nothing", nil, trial("", ""), ""},
	} {
		home := laptop.Home(t.TempDir())
		for i, file := range c.files {
			path := filepath.Join(home.Logs(), "ns", file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("a line"), 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(int64(i), 0)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		want := c.want
		if want != "" {
			want = filepath.Join(home.Logs(), "ns", c.want)
		}
		if got := c.wanted.log(home); got != want {
			t.Errorf("%s: got %q, want %q", c.reason, got, want)
		}
	}
}
