// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// TestAmong starts containers among the processes of another one: they see those, and may look
// into them, but are in files of their own. Each ends with all that it started, and with the other.
func TestAmong(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){"in cgroups": func(*Config) {}, "without": func(c *Config) { c.NoGroups = true }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, change)
			target := specFor(t, "sh", "-c", "echo target >/file; echo up; sleep 1000; :")
			running := start(t, r, target)
			awaitText(t, target.Log, "up")

			among := func(args ...string) container.Spec {
				spec := specFor(t, args...)
				spec.Among = &target.ID
				return spec
			}
			spec := among("sh", "-c", `ps -o args | grep -c 'sleep 100[0]'; cat /proc/1/root/file; cat /file 2>/dev/null; hostname >/dev/null; kill -0 1 && echo killable; ls /proc/self/fd | wc -l`)
			if text, exit := output(t, r, spec); text != "2\ntarget\nkillable\n4\n" || exit.Code != 0 {
				t.Errorf("among others, it says %q, %+v", text, exit)
			}

			leaves := among("sh", "-c", "sleep 2345 & echo left")
			if text, exit := output(t, r, leaves); text != "left\n" || exit.Code != 0 {
				t.Errorf("got %q, %+v", text, exit)
			}
			if text, err := execute(t, running, "ps", "-o", "args"); err != nil || strings.Contains(text, "sleep 2345") {
				t.Errorf("what it started is left: %v\n%s", err, text)
			}

			stays := among("sh", "-c", "sleep 3456 & echo up; sleep 3456; :")
			debug := start(t, r, stays)
			awaitText(t, stays.Log, "up")
			if text, err := execute(t, debug, "sh", "-c", "cat /proc/1/root/file; ps -o args | grep -c '[s]leep 3456'"); err != nil || text != "target\n3\n" {
				t.Errorf("a command beside says %q, %v", text, err)
			}
			if err := unix.Kill(parent(t, debug.(*run).pid), unix.SIGKILL); err != nil { // its monitor
				t.Fatal(err)
			}
			if exit := await(t, debug); exit.Outcome != container.Lost {
				t.Errorf("got %+v", exit)
			}
			if text, err := execute(t, running, "ps", "-o", "args"); err != nil || strings.Contains(text, "sleep 3456") {
				t.Errorf("what it started is left: %v\n%s", err, text)
			}

			last := among("sh", "-c", "echo up; sleep 1000; :")
			debug = start(t, r, last)
			awaitText(t, last.Log, "up")
			running.Kill()
			await(t, running)
			if exit := await(t, debug); exit.Code != 137 {
				t.Errorf("with its target, it ends with %+v", exit)
			}
			late := among("true")
			log := openLog(t, late)
			defer log.Close()
			if _, err := r.Start(t.Context(), late, log); err == nil || !strings.Contains(err.Error(), target.ID.String()) {
				t.Errorf("among the processes of one that has ended: %v", err)
			}
		})
	}
}

// TestAmongOthers holds that a container among the processes of another one with fewer rights
// cannot look into it, and that none of them can look into what starts there.
func TestAmongOthers(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	target := specFor(t, "sh", "-c", `echo up
		while :; do for p in /proc/[0-9]*; do
			case "$p" in /proc/1|/proc/$$) continue;; esac
			cat $p/root/outside 2>/dev/null; case "$(readlink $p/exe)" in *busybox|"") ;; *) echo sees $(readlink $p/exe);; esac
		done; done`)
	outside := put(t, tempDir(t), "outside", "the machine's\n")
	target.Env = append(target.Env, fmt.Sprintf("OUTSIDE=%s", outside))
	start(t, r, target)
	awaitText(t, target.Log, "up")
	for range 15 {
		spec := specFor(t, "sh", "-c", "cat /proc/1/root/bin/busybox >/dev/null 2>&1 && echo open")
		spec.Among = &target.ID
		spec.User = &container.User{UID: 1000, GID: 1000}
		if text, _ := output(t, r, spec); text != "" {
			t.Errorf("with another user it says %q", text)
		}
	}
	if text, _ := os.ReadFile(target.Log); string(text) != "up\n" {
		t.Errorf("the target says %q", text)
	}
}
