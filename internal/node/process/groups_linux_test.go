// SPDX-License-Identifier: Apache-2.0

package process

import (
	"slices"
	"testing"
	"time"

	"diwan.dev/diwan/internal/node/container"
	"diwan.dev/diwan/internal/node/thread"
)

// TestKillSparesItself ends a run of which this process is still starting a
// program, as a command beside it: the thread that does so is in the run's groups.
func TestKillSparesItself(t *testing.T) {
	t.Parallel()
	g := openGroups(t.TempDir())
	t.Cleanup(g.close)
	dirs, _ := g.create(container.ID{Pod: "pod", Name: "main"}, container.Limits{Memory: 64 << 20})
	t.Cleanup(func() { g.remove(dirs) })
	if !slices.ContainsFunc(dirs, g.isLegacy) {
		t.Skip("this machine has no legacy control groups")
	}
	joined, release := make(chan error), make(chan struct{})
	go thread.Run(func() error {
		joined <- g.join(dirs)
		<-release
		return nil
	})
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	g.kill(dirs) // without an exception this is the end of the test
	if g.remove(dirs) {
		t.Error("groups with a thread in them are removed")
	}
	close(release)
	for deadline := time.Now().Add(time.Minute); !g.remove(dirs); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the groups stay when the thread has ended")
		}
	}
}
