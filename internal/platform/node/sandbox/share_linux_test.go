// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/capability"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/runstate"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
)

// TestSharedProcesses has containers of a Pod see each other's processes. One that ends takes what it
// started with it and leaves the others; with the last one, what held them together goes.
func TestSharedProcesses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){"in cgroups": func(*Config) {}, "without": func(c *Config) { c.NoGroups = true }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, change)
			first := specFor(t, "sh", "-c", "echo up; sleep 1111; :")
			first.SharesProcesses = true
			inPod := func(name string, args ...string) container.Spec {
				spec := specFor(t, args...)
				spec.ID, spec.SharesProcesses = container.ID{Pod: first.ID.Pod, Name: name}, true
				return spec
			}
			main := start(t, r, first)
			awaitText(t, first.Log, "up")
			second := inPod("second", "sh", "-c", `ps -o args | grep -c '[s]leep 1111'; readlink /proc/1/root /proc/1/exe; cat /proc/1/root/etc/passwd 2>/dev/null; kill -9 1; ls /proc/1/fd 2>/dev/null | wc -l; sleep 2222 & echo left`)
			second.Security.Capabilities |= capability.Set(1 << unix.CAP_SYS_PTRACE)
			middle := start(t, r, second)
			exit := await(t, middle)
			text, err := os.ReadFile(second.Log)
			if err != nil {
				t.Fatal(err)
			}
			// It sees the other's shell and sleep, and nothing of what holds them together.
			lines := strings.Split(string(text), "\n")
			if lines[0] != "2" || !strings.HasSuffix(string(text), "\n0\nleft\n") || strings.Contains(string(text), "root:") || exit.Code != 0 {
				t.Errorf("the second container says %q, %+v", text, exit)
			}
			if text, err := execute(t, main, "ps", "-o", "args"); err != nil || strings.Contains(text, "sleep 2222") || !strings.Contains(text, "sleep 1111") {
				t.Errorf("the first one sees %v\n%s", err, text)
			}
			third := inPod("third", "sh", "-c", "echo up; sleep 3333; :")
			other := start(t, r, third)
			awaitText(t, third.Log, "up")
			main.Kill()
			await(t, main)
			if text, err := execute(t, other, "ps", "-o", "args"); err != nil || strings.Contains(text, "sleep 1111") {
				t.Errorf("what has ended is seen: %v\n%s", err, text)
			}
			share := filepath.Join(r.cfg.Dir, first.ID.Pod, shareDir)
			pid, began, ok := idle(share)
			if !ok {
				t.Fatal("the Pod has no idle process")
			}
			other.Kill()
			await(t, other)
			for _, run := range []container.Run{main, middle, other} {
				if err := run.Remove(); err != nil {
					t.Error(err)
				}
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if now, err := early.Began(pid); err != nil || now != began {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the idle process lives")
				}
			}
			if left, err := os.ReadDir(r.cfg.Dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// TestIdleAlone holds that an idle process that nobody ends ends by itself, and that what it has is
// nothing.
func TestIdleAlone(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "true")
	spec.SharesProcesses = true
	dir := filepath.Join(tempDir(t), shareDir)
	pid, began, err := (&run{runtime: r, record: runstate.Record{Spec: spec}}).share(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"} {
		if got := status(string(text), name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if files, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd")); err == nil && len(files) > 0 {
		t.Errorf("it has open files: %v", files)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if now, err := early.Began(pid); err != nil || now != began {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
}
