// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/node/container"
	"diwan.dev/diwan/internal/node/rootless"
	"diwan.dev/diwan/internal/node/thread"
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

func TestMountPointsAreRemoved(t *testing.T) {
	t.Parallel()
	r, err := New(DefaultConfig(filepath.Join(t.TempDir(), "pods")))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Mounts() {
		t.Skip("this machine lets nobody mount")
	}
	targets := t.TempDir()
	spec := specFor(t, r, "true")
	spec.Mounts = []container.Mount{{Source: t.TempDir(), Target: filepath.Join(targets, "a/b")}}
	run := start(t, r, spec)
	await(t, run)
	if err := run.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(targets); len(left) != 0 {
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
		if err := os.MkdirAll(secretsDir, 0o755); err != nil {
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
