// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/keeper"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

func TestMain(m *testing.M) {
	if os.Args[0] == keeper.Name {
		os.Exit(keeper.Main(os.Args[1:]))
	}
	if dir := os.Getenv(helperEnv); dir != "" {
		own(dir)
		return
	}
	if err := rootless.Enter(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(m.Run())
}

// modes are the ways in which a runtime finds a run's processes.
var modes = map[string]func(*Config){
	"as the machine allows":      func(*Config) {},
	"without control groups":     func(c *Config) { c.NoGroups = true },
	"without namespaces or such": func(c *Config) { c.NoGroups, c.NoNamespaces = true, true },
}

// keeping makes the test binary the runtime's keeper.
func keeping(cfg Config) Config {
	var err error
	if cfg.Keeper, err = os.Executable(); err != nil {
		panic(err)
	}
	return cfg
}

func newRuntime(t *testing.T, change func(*Config)) *Runtime {
	t.Helper()
	cfg := keeping(DefaultConfig(filepath.Join(t.TempDir(), "pods")))
	change(&cfg)
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

var serial = make(chan int, 1)

func init() { serial <- 0 }

func specFor(t *testing.T, r *Runtime, args ...string) container.Spec {
	t.Helper()
	n := <-serial
	serial <- n + 1
	return container.Spec{
		ID:   container.ID{Pod: fmt.Sprintf("pod-%d-%d", os.Getpid(), n), Name: "main"},
		Args: args,
		Env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=/"},
		Dir:  t.TempDir(),
		Log:  filepath.Join(t.TempDir(), "0.log"),
	}
}

func start(t *testing.T, r *Runtime, spec container.Spec) container.Run {
	t.Helper()
	out, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	run, err := r.Start(t.Context(), spec, out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run.Kill()
		<-run.Done()
		run.Remove()
	})
	return run
}

func await(t *testing.T, run container.Run) container.Exit {
	t.Helper()
	select {
	case <-run.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end", run.Spec().ID)
	}
	return run.Exit()
}

// awaitText waits until the log holds text.
func awaitText(t *testing.T, log, text string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if have, err := os.ReadFile(log); err == nil && strings.Contains(string(have), text) {
			return string(have)
		}
	}
	have, _ := os.ReadFile(log)
	t.Fatalf("%q does not appear in the log; it holds %q", text, have)
	return ""
}

func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ") && unix.Kill(pid, 0) == nil
}

func TestEnd(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   []string
		code   int32
		output string
	}{
		"success":      {"code 0 and the output are kept", []string{"echo", "loss=0.1"}, 0, "loss=0.1\n"},
		"failure":      {"the program's code is the container's", []string{"sh", "-c", "exit 7"}, 7, ""},
		"signal":       {"a signal counts 128 more", []string{"sh", "-c", "kill -9 $$"}, 137, ""},
		"not a word":   {"a shell's own words are looked up as programs", []string{"true"}, 0, ""},
		"streams":      {"both streams go to the log in order", []string{"sh", "-c", "echo a; echo b >&2; echo c"}, 0, "a\nb\nc\n"},
		"no file 3":    {"the program does not hold the run file", []string{"sh", "-c", "echo x >&3 || echo closed"}, 0, "closed\n"},
		"interruptble": {"SIGINT is not ignored in the program", []string{"sh", "-c", "kill -INT $$; sleep 60"}, 130, ""},
		"default TERM": {"the shim's traps do not reach the program", []string{"sh", "-c", "kill -TERM $$; sleep 60"}, 143, ""},
		"quoting":      {"arguments arrive as they are", []string{"printf", "%s|", "a b", "", "$HOME", "'", "*", "\n"}, 0, "a b||$HOME|'|*|\n|"},
		"binary":       {"any bytes pass", []string{"printf", `\000\377\001`}, 0, "\x00\xff\x01"},
		"no input":     {"standard input is empty", []string{"cat"}, 0, ""},
	}
	for mode, change := range modes {
		for name, tc := range cases {
			t.Run(mode+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := newRuntime(t, change)
				spec := specFor(t, r, tc.args...)
				exit := await(t, start(t, r, spec))
				if exit.Outcome != container.Exited || exit.Code != tc.code {
					t.Errorf("%s: got %+v, want code %d", tc.reason, exit, tc.code)
				}
				have, err := os.ReadFile(spec.Log)
				if err != nil {
					t.Fatal(err)
				}
				if tc.output == "closed\n" {
					have = have[bytes.LastIndex(bytes.TrimSuffix(have, []byte("\n")), []byte("\n"))+1:]
				}
				if diff := cmp.Diff(tc.output, string(have)); diff != "" {
					t.Errorf("%s: output (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	spec := specFor(t, r, "env")
	spec.Env = append(spec.Env, "A=1", "A=2", "my.var=dotted", "EMPTY=", "LINES=a\nb")
	await(t, start(t, r, spec))
	have, _ := os.ReadFile(spec.Log)
	for _, want := range []string{"A=2\n", "my.var=dotted\n", "EMPTY=\n", "LINES=a\nb\n", markerName + "=" + spec.ID.String() + "\n"} {
		if !strings.Contains(string(have), want) {
			t.Errorf("the program does not see %q; it sees %q", want, have)
		}
	}
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason  string
		args    []string
		code    int32
		mention string
	}{
		"unknown program": {"the message names it and the remedy", []string{"no-such-program-here"}, 127, "diwan images map"},
		"unknown path":    {"a path is not looked up", []string{"/no/such/program"}, 127, "/no/such/program"},
		"not executable":  {"a plain file cannot run", []string{plain}, 126, "chmod +x"},
		"directory":       {"nor can a directory", []string{"/tmp"}, 126, "/tmp"},
		"empty name":      {"nor can nothing", []string{""}, 127, "empty"},
		"dash":            {"a shell would take it for an option", []string{"-c"}, 127, "dash"},
		"no command":      {"there is nothing to run", nil, 128, "without a command"},
		"too long":        {"the system's limit is told", []string{"echo", strings.Repeat("x", 3<<20)}, 128, "too long"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := specFor(t, r, tc.args...)
			_, err := r.Start(t.Context(), spec, os.Stdout)
			var start *container.StartError
			if !errors.As(err, &start) || start.Code != tc.code || !strings.Contains(err.Error(), tc.mention) {
				t.Errorf("%s: got %v (%+v)", tc.reason, err, start)
			}
			if _, err := os.Stat(string(runstate.Of(r.cfg.Dir, spec.ID))); err == nil {
				t.Error("a run that did not start left its state")
			}
		})
	}
}

func TestOrphansEnd(t *testing.T) {
	t.Parallel()
	for mode, change := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, change)
			spec := specFor(t, r, "sh", "-c", `
				(trap "" TERM HUP INT; setsid sleep 1000) & 
				setsid sh -c 'echo child $$; trap "" TERM; sleep 1000' &
				while ! grep -q child `+"$LOG"+`; do :; done`)
			spec.Env = append(spec.Env, "LOG="+spec.Log)
			if exit := await(t, start(t, r, spec)); exit.Code != 0 {
				t.Fatalf("got %+v", exit)
			}
			if left := marked(spec.ID); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

func TestSignalAndKill(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	t.Run("a handler's code counts", func(t *testing.T) {
		t.Parallel()
		spec := specFor(t, r, "sh", "-c", `trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
		run := start(t, r, spec)
		awaitText(t, spec.Log, "ready")
		if err := run.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := await(t, run); exit.Code != 3 {
			t.Errorf("got %+v", exit)
		}
		if err := run.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("a signal after the end: %v", err)
		}
	})
	t.Run("who ignores TERM is killed", func(t *testing.T) {
		t.Parallel()
		spec := specFor(t, r, "sh", "-c", `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
		run := start(t, r, spec)
		awaitText(t, spec.Log, "ready")
		run.Signal(syscall.SIGTERM)
		if err := run.Kill(); err != nil {
			t.Fatal(err)
		}
		if exit := await(t, run); exit.Code != 137 || exit.Outcome != container.Exited {
			t.Errorf("got %+v", exit)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		run := start(t, r, specFor(t, r, "sleep", "1000"))
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
	r := newRuntime(t, modes["as the machine allows"])
	spec := specFor(t, r, "sleep", "1000")
	start(t, r, spec)
	if _, err := r.Start(t.Context(), spec, os.Stdout); err == nil {
		t.Error("the same run started twice")
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, modes["as the machine allows"])
	spec := specFor(t, r, "sleep", "1000")
	spec.Env = append(spec.Env, "WHO=me")
	run := start(t, r, spec)
	t.Run("streams and code", func(t *testing.T) {
		var out, errs bytes.Buffer
		err := run.Exec(t.Context(), []string{"sh", "-c", "cat; echo $WHO; pwd; echo bad >&2; exit 9"},
			container.Streams{Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs})
		var exit *container.ExitError
		if !errors.As(err, &exit) || exit.Code != 9 {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff("in\nme\n"+spec.Dir+"\n", out.String()); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		if errs.String() != "bad\n" {
			t.Errorf("errors: %q", errs.String())
		}
	})
	t.Run("terminal", func(t *testing.T) {
		sizes := make(chan [2]uint16, 1)
		defer close(sizes)
		sizes <- [2]uint16{123, 45}
		var out bytes.Buffer
		err := run.Exec(t.Context(), []string{"sh", "-c", "while ! stty size | grep -q 123; do :; done; stty size; tty"},
			container.Streams{Stdout: &out, TTY: true, Resize: sizes})
		if err != nil || !strings.Contains(out.String(), "45 123") || !strings.Contains(out.String(), "/dev/pts/") {
			t.Errorf("got %v, %q", err, out.String())
		}
	})
	t.Run("a left child does not hold it", func(t *testing.T) {
		var out bytes.Buffer
		if err := run.Exec(t.Context(), []string{"sh", "-c", "sleep 1000 & echo x"}, container.Streams{Stdout: &out}); err != nil || out.String() != "x\n" {
			t.Errorf("got %v, %q", err, out.String())
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		read, write := ioPipe(t)
		go func() { bufio.NewReader(read).ReadString('\n'); cancel() }()
		if err := run.Exec(ctx, []string{"sh", "-c", "echo up; sleep 1000"}, container.Streams{Stdout: write}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("missing program", func(t *testing.T) {
		if err := run.Exec(t.Context(), []string{"no-such"}, container.Streams{}); err == nil {
			t.Error("no error")
		}
	})
}

func ioPipe(t *testing.T) (*os.File, *os.File) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

func BenchmarkStart(b *testing.B) {
	mounts := []container.Mount{{Source: "/etc/hosts", Target: "/etc/hosts"}, {Source: "/tmp", Target: "/mnt", ReadOnly: true}}
	b.Run("os/exec alone", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("sh", "-c", "(exec echo loss=1); exit $?").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, change := range modes {
		b.Run(name, func(b *testing.B) {
			cfg := DefaultConfig(filepath.Join(b.TempDir(), "pods"))
			change(&cfg)
			r, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			log, _ := os.Create(filepath.Join(b.TempDir(), "log"))
			defer log.Close()
			i := 0
			for b.Loop() {
				i++
				run, err := r.Start(b.Context(), container.Spec{
					ID: container.ID{Pod: fmt.Sprintf("bench-%d-%d", os.Getpid(), i), Name: "c"}, Args: []string{"echo", "loss=1"},
					Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", Mounts: mounts, Hostname: "pod",
				}, log)
				if err != nil {
					b.Fatal(err)
				}
				<-run.Done()
				if err := run.Remove(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
