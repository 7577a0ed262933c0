// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

	"diwan.dev/diwan/internal/node/container"
	"diwan.dev/diwan/internal/node/rootless"
	"diwan.dev/diwan/internal/node/thread"
)

// helperEnv makes the test binary a process that owns a runtime: it starts the
// run that it reads, says so, and waits to be killed.
const helperEnv = "DIWAN_TEST_PROCESS_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		own(dir)
		return
	}
	if err := rootless.Enter(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(m.Run())
}

func own(dir string) {
	r, err := New(DefaultConfig(dir))
	if err != nil {
		panic(err)
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var spec container.Spec
		if in.Decode(&spec) != nil {
			select {}
		}
		out, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		if _, err := r.Start(context.Background(), spec, out); err != nil {
			panic(err)
		}
		fmt.Println("started")
	}
}

// modes are the ways in which a runtime finds a run's processes.
var modes = map[string]func(*Config){
	"as the machine allows":      func(*Config) {},
	"without control groups":     func(c *Config) { c.NoGroups = true },
	"without namespaces or such": func(c *Config) { c.NoGroups, c.NoNamespaces = true, true },
}

func newRuntime(t *testing.T, change func(*Config)) *Runtime {
	t.Helper()
	cfg := DefaultConfig(filepath.Join(t.TempDir(), "pods"))
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
			if _, err := os.Stat(stateOf(r.cfg.Dir, spec.ID).dir); err == nil {
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

// owner is a process that owns a runtime and can be killed.
type owner struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
}

func startOwner(t *testing.T, dir string) *owner {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd, json.NewEncoder(in), bufio.NewScanner(out)}
	t.Cleanup(o.kill)
	return o
}

func (o *owner) start(t *testing.T, spec container.Spec) {
	t.Helper()
	if err := o.in.Encode(spec); err != nil || !o.out.Scan() {
		t.Fatalf("the owner did not start the run: %v", err)
	}
}

func (o *owner) kill() {
	o.cmd.Process.Kill()
	o.cmd.Wait()
}

func TestKilledOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pods")
	o := startOwner(t, dir)
	probe := &Runtime{}
	long := specFor(t, probe, "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.01; done; exit 5")
	quick := specFor(t, probe, "sh", "-c", "exit 4")
	gone := specFor(t, probe, "sh", "-c", "echo pid $$; sleep 1000")
	for _, spec := range []container.Spec{long, quick, gone} {
		o.start(t, spec)
	}
	awaitText(t, long.Log, "begun")
	awaitText(t, gone.Log, "pid")
	for st := stateOf(dir, quick.ID); ; time.Sleep(time.Millisecond) {
		if saw, err := st.look(); err != nil || saw.ended {
			break
		}
	}
	o.kill()
	// As when the machine was restarted: the shim and its program are gone.
	saw, err := stateOf(dir, gone.ID).look()
	if err != nil {
		t.Fatal(err)
	}
	unix.Kill(-saw.pid, unix.SIGKILL)
	for alive(saw.pid) {
		time.Sleep(time.Millisecond)
	}

	r, err := New(DefaultConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	runs, err := r.Recover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[container.ID]container.Run{}
	for _, run := range runs {
		found[run.Spec().ID] = run
		defer func() { run.Kill(); <-run.Done(); run.Remove() }()
	}
	if len(found) != 3 {
		t.Fatalf("found %v, want 3 runs", found)
	}
	if exit := await(t, found[quick.ID]); exit.Outcome != container.Exited || exit.Code != 4 {
		t.Errorf("the run that ended by itself: %+v", exit)
	}
	if exit := await(t, found[gone.ID]); exit.Outcome != container.Lost {
		t.Errorf("the run that died: %+v", exit)
	}
	select {
	case <-found[long.ID].Done():
		t.Fatal("the living run is told as ended")
	default:
	}
	var out bytes.Buffer
	if err := found[long.ID].Exec(t.Context(), []string{"touch", "go"}, container.Streams{Stdout: &out, Stderr: &out}); err != nil {
		t.Fatalf("cannot run a command in an adopted run: %v %s", err, &out)
	}
	if exit := await(t, found[long.ID]); exit.Outcome != container.Exited || exit.Code != 5 {
		t.Errorf("the adopted run: %+v", exit)
	}
	if diff := cmp.Diff(long, found[long.ID].Spec()); diff != "" {
		t.Errorf("the spec of an adopted run (-want +got):\n%s", diff)
	}
}

// TestKilledAtAnyMoment kills owners while they start runs as fast as they can.
// Each run either never began or is found; none is unknown, none is left.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	dir, logs := filepath.Join(t.TempDir(), "pods"), t.TempDir()
	probe := &Runtime{}
	begun := map[string]int{}
	for round := range 10 {
		o := startOwner(t, dir)
		for i := range round + 1 {
			spec := specFor(t, probe, "sh", "-c", "echo begun $$; sleep 1000")
			spec.Log = filepath.Join(logs, spec.ID.Pod)
			if i < round {
				o.start(t, spec)
			} else {
				o.in.Encode(spec)
			}
		}
		o.kill()
		r, err := New(DefaultConfig(dir))
		if err != nil {
			t.Fatal(err)
		}
		runs, err := r.Recover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			begun[run.Spec().ID.Pod]++
			run.Kill()
			await(t, run)
			if err := run.Remove(); err != nil {
				t.Error(err)
			}
			if left := marked(run.Spec().ID); len(left) > 0 {
				t.Errorf("processes %v of %s are left", left, run.Spec().ID)
			}
		}
		r.Close()
	}
	entries, _ := os.ReadDir(logs)
	for _, e := range entries {
		if text, _ := os.ReadFile(filepath.Join(logs, e.Name())); len(text) > 0 && begun[e.Name()] != 1 {
			t.Errorf("run %s wrote %q and was found %d times", e.Name(), text, begun[e.Name()])
		}
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

func FuzzReport(f *testing.F) {
	for _, s := range []string{"", "1", "12\n", "12\n0", "12\n137\n", "x\n1\n", "\n\n", "12\n-1\n", "12\n999\n", "0\n0\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r report
		r.parse(text)
		if r.ended && (r.pid == 0 || r.code < 0 || r.code > 255 || strings.Count(text, "\n") < 2) {
			t.Errorf("%q reads as %+v", text, r)
		}
	})
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
