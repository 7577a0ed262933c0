// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/thread"
)

func TestMounts(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	if !r.Mounts() {
		t.Skip("this machine lets nobody mount")
	}
	dir, targets := t.TempDir(), t.TempDir()
	os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644)
	os.Mkdir(filepath.Join(targets, "there"), 0o755)
	at := func(name string) string { return filepath.Join(targets, name) }
	spec := specFor(t, r, "sh", "-c", `
		cat $T/there/file $T/made/deep/file $T/one; echo
		echo new >$T/there/new && cat $T/made/deep/new
		(echo x >$T/made/deep/x) 2>/dev/null || echo read-only`)
	spec.Env = append(spec.Env, "T="+targets)
	spec.Mounts = []container.Mount{
		{Source: dir, Target: at("there")},
		{Source: dir, Target: at("made/deep"), ReadOnly: true},
		{Source: filepath.Join(dir, "file"), Target: at("one"), ReadOnly: true},
		{Source: "/no/such/source", Target: at("none"), Optional: true},
	}
	exit := await(t, start(t, r, spec))
	have, _ := os.ReadFile(spec.Log)
	if diff := cmp.Diff("texttexttext\nnew\nread-only\n", string(have)); diff != "" || exit.Code != 0 {
		t.Errorf("exit %+v, output (-want +got):\n%s", exit, diff)
	}
	if entries, _ := os.ReadDir(at("there")); len(entries) != 0 {
		t.Error("the mounts are seen outside")
	}
	broken := specFor(t, r, "true")
	broken.Mounts = []container.Mount{{Source: "/no/such/source", Target: at("there")}}
	if r.spaces {
		var failed *container.StartError
		if _, err := r.Start(t.Context(), broken, os.Stdout); !errors.As(err, &failed) {
			t.Errorf("a mount that fails: %v", err)
		}
	}
}

// TestMountsHideMountPoints mounts a volume over a directory in which a mount point
// was made for another.
func TestMountsHideMountPoints(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	if !r.Mounts() {
		t.Skip("this machine lets nobody mount")
	}
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "file"), []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := specFor(t, r, "sh", "-c", "cat "+podMark+"/diwan-test-b/file && echo new >/var/run/made && cat /var/run/made && ls "+podMark)
	spec.Mounts = []container.Mount{
		{Source: data, Target: podMark + "/diwan-test-a"},
		{Source: t.TempDir(), Target: "/var/run"},
		{Source: data, Target: podMark + "/diwan-test-b"},
	}
	await(t, start(t, r, spec))
	have, _ := os.ReadFile(spec.Log)
	if diff := cmp.Diff("text\nnew\ndiwan-test-b\n", string(have)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestMountsCoverAllOrNothing covers a directory that does not fit, which is then
// seen as it was, and copies what has gone meanwhile.
func TestMountsCoverAllOrNothing(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	if !r.Mounts() {
		t.Skip("this machine lets nobody mount")
	}
	full, space := t.TempDir(), t.TempDir()
	for i := range 300 { // each takes a page
		if err := os.Symlink(strings.Repeat("x", 200), filepath.Join(full, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return err
		}
		if _, err := r.cover(full); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a directory that does not fit gives %v", err)
		}
		if entries, err := os.ReadDir(full); len(entries) != 300 {
			t.Errorf("it then has %d entries, want 300 (%v)", len(entries), err)
		}
		for _, kind := range []os.FileMode{0, os.ModeDir, os.ModeSymlink} {
			if err := copyEntry(filepath.Join(full, "none"), filepath.Join(space, "none"), kind); err != nil {
				t.Errorf("a %v that has gone gives %v", kind, err)
			}
		}
		if entries, err := os.ReadDir(space); len(entries) != 0 || err != nil {
			t.Errorf("of what has gone is left: %v (%v)", entries, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestMountPointsGoWithTheirLastRun has the runs of two runtimes share mount points
// that the machine does not have.
func TestMountPointsGoWithTheirLastRun(t *testing.T) {
	t.Parallel()
	r, other := newRuntime(t, modes["as the machine allows"]), newRuntime(t, modes["as the machine allows"])
	if !r.Mounts() {
		t.Skip("this machine lets nobody mount")
	}
	data, targets := t.TempDir(), t.TempDir()
	file := filepath.Join(data, "file")
	if err := os.WriteFile(file, []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(targets, "user's"), 0o755); err != nil {
		t.Fatal(err)
	}
	mounts := []container.Mount{
		{Source: data, Target: filepath.Join(targets, "a/b c/d")},
		{Source: t.TempDir(), Target: filepath.Join(targets, "a/b c/d/inside")},
		{Source: file, Target: filepath.Join(targets, "f/file")},
		{Source: data, Target: filepath.Join(targets, "user's")},
	}
	run := func(r *Runtime) (container.Run, string) {
		spec := specFor(t, r, "sh", "-c", `echo begun; while [ ! -e go ]; do sleep 0.01; done; cat "$T/a/b c/d/file" "$T/f/file" "$T/user's/file"`)
		spec.Env = append(spec.Env, "T="+targets)
		spec.Mounts = mounts
		run := start(t, r, spec)
		awaitText(t, spec.Log, "begun\n")
		return run, spec.Log
	}
	end := func(run container.Run) {
		if err := os.WriteFile(filepath.Join(run.Spec().Dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		await(t, run)
	}
	first, _ := run(r)
	second, log := run(other)
	end(first)
	end(second)
	if have, _ := os.ReadFile(log); string(have) != "begun\ntext\ntext\ntext\n" {
		t.Errorf("a run whose mount points another made saw %q when that had ended", have)
	}
	if left, _ := os.ReadDir(targets); len(left) != 1 || left[0].Name() != "user's" {
		t.Errorf("%v are left, want only what the user made", left)
	}
	failing := specFor(t, r, "/no/such/program")
	failing.Mounts = mounts[:1]
	if _, err := r.Start(t.Context(), failing, os.Stdout); err == nil {
		t.Error("a program that is not there starts")
	}
	if left, _ := os.ReadDir(targets); len(left) != 1 {
		t.Errorf("a run that did not start leaves %v", left)
	}
}

// TestMountPointsComeAndGo starts and ends many runs at a time that share a mount
// point: each sees its volume, and nothing is left.
func TestMountPointsComeAndGo(t *testing.T) {
	t.Parallel()
	both := []*Runtime{newRuntime(t, modes["as the machine allows"]), newRuntime(t, modes["as the machine allows"])}
	if !both[0].Mounts() {
		t.Skip("this machine lets nobody mount")
	}
	data, targets := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(targets, "a/b")
	var users sync.WaitGroup
	for i := range 8 {
		users.Go(func() {
			for range 10 {
				spec := specFor(t, both[i%2], "test", "-e", target+"/file")
				spec.Mounts = []container.Mount{{Source: data, Target: target}}
				run, err := both[i%2].Start(t.Context(), spec, os.Stdout)
				if err != nil {
					t.Error(err)
					return
				}
				<-run.Done()
				if code := run.Exit().Code; code != 0 {
					t.Errorf("a run does not see its volume: exit code %d", code)
				}
				if err := run.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	if left, _ := os.ReadDir(targets); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestServiceAccountsAreNotOnTheHost holds that Kubernetes clients beside the
// Pods do not take the machine for the inside of one.
func TestServiceAccountsAreNotOnTheHost(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	if !r.spaces {
		t.Skip("this machine lets nobody mount")
	}
	if _, err := os.Stat(podMark); err == nil {
		t.Skipf("%s is there already: this is the inside of a Pod, or an earlier version left it", podMark)
	}
	account := t.TempDir()
	if err := os.WriteFile(filepath.Join(account, "namespace"), []byte("ns"), 0o644); err != nil {
		t.Fatal(err)
	}
	script, want := "cat "+podMark+"/serviceaccount/namespace", "ns"
	if rootless.Root() { // others cannot have files there
		var points mountpoints
		defer release([]container.Mount{{Target: secretsDir}})
		defer points.close()
		if err := points.ensure(container.Mount{Source: t.TempDir(), Target: secretsDir}, nil); err != nil {
			t.Fatal(err)
		}
		kept, err := os.CreateTemp(secretsDir, "diwan-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(kept.Name())
		if _, err := kept.WriteString("of the host\n"); err != nil {
			t.Fatal(err)
		}
		script, want = "cat "+kept.Name()+" && "+script, "of the host\nns"
	}
	spec := specFor(t, r, "sh", "-c", script)
	spec.Mounts = []container.Mount{{Source: account, Target: podMark + "/serviceaccount", ReadOnly: true}}
	await(t, start(t, r, spec))
	have, _ := os.ReadFile(spec.Log)
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(podMark); err == nil {
		t.Errorf("%s is on the host", podMark)
	}
}
