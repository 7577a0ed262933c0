// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

// owner is a process that owns a runtime and can be killed.
type owner struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
}

func startOwner(t *testing.T, dir string) *owner {
	t.Helper()
	rootlesstest.NeedNamespaces(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownerEnv+"="+dir)
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

// leftovers are what is left on the machine of the runs in a directory: mounts, and
// processes whose files are there.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var left []string
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, dir) {
			left = append(left, "the mount "+line)
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if strings.HasPrefix(file, fmt.Sprintf("/proc/%d/", os.Getpid())) {
			continue
		}
		if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, dir+"/") {
			left = append(left, "the process with the file "+file+" "+to)
		}
	}
	return left
}

func TestKilledOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "pods")
	o := startOwner(t, dir)
	data := tempDir(t)
	long := specFor(t, "sh", "-c", "echo begun; until [ -e /data/go ]; do sleep 0.01; done; echo over; exit 5")
	long.Mounts = []container.Mount{{Source: data, Target: "/data"}}
	quick := specFor(t, "sh", "-c", "exit 4")
	gone := specFor(t, "sh", "-c", "echo begun; sleep 1000")
	for _, spec := range []container.Spec{long, quick, gone} {
		o.start(t, spec)
	}
	awaitText(t, long.Log, "begun")
	awaitText(t, gone.Log, "begun")
	for st := runstate.Of(dir, quick.ID); ; time.Sleep(time.Millisecond) {
		if saw, err := st.Look(); err != nil || saw.Ended {
			break
		}
	}
	o.kill()
	// As when the machine was restarted: the monitor and the program are gone.
	saw, err := runstate.Of(dir, gone.ID).Look()
	if err != nil {
		t.Fatal(err)
	}
	unix.Kill(parent(t, saw.PID), unix.SIGKILL)
	for saw.Running {
		if saw, err = runstate.Of(dir, gone.ID).Look(); err != nil {
			t.Fatal(err)
		}
	}

	r, err := New(testConfig(dir))
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
	if out, err := execute(t, found[long.ID], "echo", "beside"); err != nil || out != "beside\n" {
		t.Fatalf("cannot run a command in an adopted run: %v %s", err, out)
	}
	put(t, data, "go", "")
	if exit := await(t, found[long.ID]); exit.Outcome != container.Exited || exit.Code != 5 {
		t.Errorf("the adopted run: %+v", exit)
	}
	awaitText(t, long.Log, "over")
	if diff := cmp.Diff(long, found[long.ID].Spec()); diff != "" {
		t.Errorf("the spec of an adopted run (-want +got):\n%s", diff)
	}
}

// TestKilledAtAnyMoment kills owners while they start and end runs as fast as they can. Each
// run either never began, or was ended, or is found; none is unknown, none is left.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	dir, logs := filepath.Join(tempDir(t), "pods"), tempDir(t)
	layer := image(t)
	begun, ended := map[string]int{}, map[string]bool{}
	for round := range 12 {
		o := startOwner(t, dir)
		for i := range 3 {
			spec := specFor(t, "sh", "-c", "echo begun; sleep 1000")
			spec.Root.Layers = []string{layer}
			spec.Log = filepath.Join(logs, spec.ID.Pod)
			spec.Stdin, spec.TTY = round%3 > 0, round%3 > 1
			if i == 1 {
				spec.Restarts = 1 // the owner ends it
				ended[spec.ID.Pod] = true
			}
			if i < round%3 {
				o.start(t, spec)
			} else {
				o.in.Encode(spec)
			}
		}
		time.Sleep(rand.N(30 * time.Millisecond)) // any moment is right
		o.kill()
		r, err := New(testConfig(dir))
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
			if exit := await(t, run); exit.Outcome == container.Exited && exit.Code != 137 {
				t.Errorf("a killed run: %+v", exit)
			}
			if err := run.Remove(); err != nil {
				t.Error(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(logs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(logs, e.Name()))
		if n := strings.Count(string(text), "begun"); n > 1 || n == 1 && begun[e.Name()] != 1 && !ended[e.Name()] || begun[e.Name()] > 1 {
			t.Errorf("run %s wrote %q and was found %d times", e.Name(), text, begun[e.Name()])
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // keepers end by themselves
		left := leftovers(t, dir)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %v", left)
		}
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroup.Name(dir) + "*")
	if len(groups) > 0 {
		t.Errorf("left: %v", groups)
	}
}
