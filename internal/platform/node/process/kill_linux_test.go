// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

// helperEnv makes the test binary a process that owns a runtime: it starts the
// run that it reads, says so, and waits to be killed.
const helperEnv = "DIWAN_TEST_PROCESS_OWNER"

// own is what such a process does.
func own(dir string) {
	r, err := New(keeping(DefaultConfig(dir)))
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
	targets := t.TempDir()
	for i, spec := range []*container.Spec{&long, &quick, &gone} { // whoever makes the mount point, it goes
		spec.Mounts = []container.Mount{{Source: t.TempDir(), Target: filepath.Join(targets, "shared", fmt.Sprint(i%2))}}
	}
	for _, spec := range []container.Spec{long, quick, gone} {
		o.start(t, spec)
	}
	awaitText(t, long.Log, "begun")
	awaitText(t, gone.Log, "pid")
	for st := runstate.Of(dir, quick.ID); ; time.Sleep(time.Millisecond) {
		if saw, err := st.Look(); err != nil || saw.Ended {
			break
		}
	}
	o.kill()
	// As when the machine was restarted: the shim and its program are gone.
	saw, err := runstate.Of(dir, gone.ID).Look()
	if err != nil {
		t.Fatal(err)
	}
	unix.Kill(-saw.PID, unix.SIGKILL)
	for alive(saw.PID) {
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
	if left, _ := os.ReadDir(targets); len(left) > 0 {
		t.Errorf("the mount points %v are left on the machine", left)
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
			spec.Stdin, spec.TTY = i%3 > 0, i%3 > 1
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
