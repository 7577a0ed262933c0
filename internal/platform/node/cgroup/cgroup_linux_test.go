// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/thread"
)

// TestKillSparesItself ends a run of which this process is still starting a
// program, as a command beside it: the thread that does so is in the run's groups.
func TestKillSparesItself(t *testing.T) {
	t.Parallel()
	g := Open(t.TempDir())
	t.Cleanup(g.Close)
	dirs, _ := g.Create(container.ID{Pod: "pod", Name: "main"}, container.Limits{Memory: 64 << 20})
	t.Cleanup(func() { g.Remove(dirs) })
	if !slices.ContainsFunc(dirs, g.isLegacy) {
		t.Skip("this machine has no legacy control groups")
	}
	joined, release := make(chan error), make(chan struct{})
	go thread.Run(func() error {
		joined <- g.Join(dirs)
		<-release
		return nil
	})
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	g.Kill(dirs) // without an exception this is the end of the test
	if g.Remove(dirs) {
		t.Error("groups with a thread in them are removed")
	}
	close(release)
	for deadline := time.Now().Add(time.Minute); !g.Remove(dirs); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the groups stay when the thread has ended")
		}
	}
}

// TestGroupsOfTheDead has a runtime remove what an earlier one on its directory
// left, and what others left that died; those of the living stay.
func TestGroupsOfTheDead(t *testing.T) {
	t.Parallel()
	id, limits := container.ID{Pod: "pod", Name: "main"}, container.Limits{Memory: 64 << 20, CPU: 100}
	living := Open(filepath.Join(t.TempDir(), "pods"))
	t.Cleanup(living.Close)
	if len(slices.Collect(living.parents())) == 0 {
		t.Skip("this machine gives this user no control groups")
	}
	kept, _ := living.Create(id, limits)
	t.Cleanup(func() { living.Remove(kept) })
	dies := func(dir string) (parents []string) {
		g := Open(dir)
		parents = slices.Collect(g.parents())
		g.Create(id, limits)
		for _, file := range g.owned {
			file.Close()
		}
		return parents
	}
	own := filepath.Join(t.TempDir(), "pods")
	earlier, stranger := dies(own), dies(filepath.Join(t.TempDir(), "pods"))
	g := Open(own)
	g.Tidy(nil)
	g.Close()
	for _, dir := range append(earlier, stranger...) {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("a living runtime lost its group: %v", err)
		}
	}
}

// TestGroupsOfFailedStarts holds that a group that a failed start left goes with
// the runtime.
func TestGroupsOfFailedStarts(t *testing.T) {
	t.Parallel()
	g := Open(filepath.Join(t.TempDir(), "pods"))
	parents := slices.Collect(g.parents())
	g.Create(container.ID{Pod: "pod", Name: "main"}, container.Limits{Memory: 64 << 20, CPU: 100})
	g.Close()
	for _, dir := range parents {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}
