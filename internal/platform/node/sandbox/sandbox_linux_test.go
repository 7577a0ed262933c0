// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/internal/platform/node/container"
)

func TestEnd(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int32
		output string
	}{
		"success":     {"code 0 and the output are kept", []string{"echo", "loss=0.1"}, 0, "loss=0.1\n"},
		"failure":     {"the program's code is the container's", []string{"sh", "-c", "exit 3"}, 3, ""},
		"signal":      {"a signal counts 128 more", []string{"sh", "-c", "sh -c 'kill -9 $$'; exit $?"}, 137, "Killed\n"},
		"path":        {"a path is not looked up", []string{"/bin/echo", "x"}, 0, "x\n"},
		"streams":     {"both streams go to the log in order", []string{"sh", "-c", "echo a; echo b >&2; echo c"}, 0, "a\nb\nc\n"},
		"files":       {"the program has three files", []string{"sh", "-c", "ls /proc/self/fd | wc -l"}, 0, "4\n"}, // and ls its directory
		"first":       {"the program is PID 1", []string{"sh", "-c", "echo $$"}, 0, "1\n"},
		"quoting":     {"arguments arrive as they are", []string{"printf", "%s|", "a b", "", "$HOME", "'", "*"}, 0, "a b||$HOME|'|*|"},
		"no input":    {"standard input is empty", []string{"cat"}, 0, ""},
		"reopened":    {"a program that opens its output anew keeps what was there", []string{"sh", "-c", "echo a; echo b >/dev/stdout; echo c >>/dev/stderr; echo d"}, 0, "a\nb\nc\nd\n"},
		"much":        {"all output is there at the end", []string{"seq", "1", "20000"}, 0, numbers(20000)},
		"background":  {"what it leaves ends with it", []string{"sh", "-c", "sleep 1000 & echo x"}, 0, "x\n"},
		"environment": {"it has its own environment", []string{"env"}, 0, "PATH=/bin\nHOME=/\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, exit := output(t, r, specFor(t, tc.args...))
			if exit.Outcome != container.Exited || exit.Code != tc.code {
				t.Errorf("%s: got %+v, want code %d", tc.reason, exit, tc.code)
			}
			if diff := cmp.Diff(tc.output, text); diff != "" {
				t.Errorf("%s: output (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, tc := range map[string]struct {
		reason  string
		change  func(*container.Spec)
		code    int32
		mention string
	}{
		"unknown program": {"the message names it", func(s *container.Spec) { s.Args = []string{"no-such"} }, 127, `"no-such" in the image: executable file not found in $PATH`},
		"unknown path":    {"a path is not looked up", func(s *container.Spec) { s.Args = []string{"/no/such"} }, 127, "/no/such"},
		"not executable":  {"a plain file cannot run", func(s *container.Spec) { s.Args = []string{"/plain"} }, 126, "not executable"},
		"no program":      {"nor text", func(s *container.Spec) { s.Args = []string{"/text"} }, 126, "no program"},
		"directory":       {"nor a directory", func(s *container.Spec) { s.Args = []string{"/tmp"} }, 126, "/tmp"},
		"no command":      {"there is nothing to run", func(s *container.Spec) { s.Args = nil }, 128, "without a command"},
		"relative":        {"a directory is absolute", func(s *container.Spec) { s.Dir = "x" }, 128, "not absolute"},
		"file":            {"a directory is no file", func(s *container.Spec) { s.Dir = "/plain" }, 128, "/plain: not a directory"},
		"too long":        {"the system's limit is told", func(s *container.Spec) { s.Args = append(s.Args, strings.Repeat("x", 3<<20)) }, 128, "too long"},
		"id":              {"ids have 31 bits", func(s *container.Spec) { s.User = &container.User{UID: 1 << 32} }, 128, "4294967296"},
		"source":          {"a volume exists", func(s *container.Spec) { s.Mounts = []container.Mount{{Source: "/no/such", Target: "/x"}} }, 128, "/no/such"},
		"over /proc":      {"the kernel's files stay", func(s *container.Spec) { s.Mounts = []container.Mount{{Source: "/tmp", Target: "/x/../proc/sys"}} }, 128, "no volume may be there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := specFor(t, "echo")
			for name, mode := range map[string]os.FileMode{"plain": 0o644, "text": 0o755} {
				if err := os.WriteFile(spec.Root.Layers[0]+"/"+name, []byte("text"), mode); err != nil {
					t.Fatal(err)
				}
			}
			tc.change(&spec)
			log := openLog(t, spec)
			defer log.Close()
			_, err := r.Start(t.Context(), spec, log)
			var start *container.StartError
			if !errors.As(err, &start) || start.Code != tc.code || !strings.Contains(err.Error(), tc.mention) {
				t.Errorf("%s: got %v (%+v)", tc.reason, err, start)
			}
			if left, _ := os.ReadDir(r.cfg.Dir + "/" + spec.ID.Pod); len(left) > 0 {
				t.Error("a run that did not start left its state")
			}
		})
	}
}

func TestSignalAndKill(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	t.Run("a handler's code counts", func(t *testing.T) {
		t.Parallel()
		spec := specFor(t, "sh", "-c", `trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
		run := start(t, r, spec)
		awaitText(t, spec.Log, "ready")
		if err := run.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := await(t, run); exit.Code != 3 || exit.Outcome != container.Exited {
			t.Errorf("got %+v", exit)
		}
		if err := run.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("a signal after the end: %v", err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		run := start(t, r, specFor(t, "sleep", "1000"))
		if err := run.Kill(); err != nil {
			t.Fatal(err)
		}
		if exit := await(t, run); exit.Code != 137 || exit.Outcome != container.Exited {
			t.Errorf("got %+v", exit)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		spec := specFor(t, "sh", "-c", `trap 'exit 143' TERM; echo ready; while :; do sleep 0.01; done`)
		run := start(t, r, spec)
		awaitText(t, spec.Log, "ready")
		if err := run.Interrupt(); err != nil {
			t.Fatal(err)
		}
		run.Signal(syscall.SIGTERM)
		if exit := await(t, run); exit.Outcome != container.Interrupted {
			t.Errorf("got %+v", exit)
		}
	})
}

func TestTwiceIsImpossible(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sleep", "1000")
	start(t, r, spec)
	log := openLog(t, spec)
	defer log.Close()
	if _, err := r.Start(t.Context(), spec, log); err == nil {
		t.Error("the same run started twice")
	}
}
