// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diwan.dev/diwan/elastic"
	"diwan.dev/diwan/elastic/agent"
)

// TestMain lets the test binary be the commands, so that tests can signal and kill them.
func TestMain(m *testing.M) {
	if os.Getenv("DIWAN_TEST_ELASTIC") != "" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func start(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), "DIWAN_TEST_ELASTIC=1")
	out := &bytes.Buffer{}
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill() })
	return command, out
}

func TestAgentEndsAsItsWorkerDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		code   int
		reason string
	}{
		{"exit 0", 0, "done"},
		{"exit 7", 7, "failed"},
		{"kill -TERM $$; sleep 60", 143, "ended by a signal"},
		{`case $DIWAN_ELASTIC in unix:*) exit 3;; esac`, 3, "it is told where its agent is"},
	} {
		command, out := start(t, "agent", "--gossip", "127.0.0.1:0", "--", "sh", "-c", c.script)
		command.Wait()
		if got := command.ProcessState.ExitCode(); got != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s", c.reason, got, c.code, out)
		}
	}
}

func TestSignalsReachTheWorker(t *testing.T) {
	t.Parallel()
	ready := t.TempDir() + "/ready"
	command, out := start(t, "agent", "--gossip", "127.0.0.1:0", "--", "sh", "-c", `trap "exit 5" TERM; touch `+ready+`; while :; do sleep 0.05; done`)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ready); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the worker does not start\n%s", out)
		}
	}
	command.Process.Signal(syscall.SIGTERM)
	command.Wait()
	if got := command.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit code %d, want the worker's\n%s", got, out)
	}
}

// TestKilledAgentsLeaveNothingForLong has agents that were killed, and one that lives, when another starts.
func TestKilledAgentsLeaveNothingForLong(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	agent := func() (*exec.Cmd, string) {
		told := filepath.Join(t.TempDir(), "socket")
		command, out := start(t, "agent", "--gossip", "127.0.0.1:0", "--", "sh", "-c", "echo $DIWAN_ELASTIC >"+told+"; exec sleep 60")
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if text, _ := os.ReadFile(told); len(text) > 0 {
				return command, filepath.Dir(strings.TrimPrefix(strings.TrimSpace(string(text)), "unix:"))
			}
			if time.Now().After(deadline) {
				command.Process.Kill()
				command.Wait()
				t.Fatalf("the worker does not start\n%s", out)
			}
		}
	}
	killed, old := agent()
	killed.Process.Kill()
	killed.Wait()
	killed, young := agent()
	killed.Process.Kill()
	killed.Wait()
	_, alive := agent()
	empty, file := filepath.Join(tmp, "diwan-elastic-1"), filepath.Join(tmp, "diwan-elastic-2")
	if err := errors.Join(os.Mkdir(empty, 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, alive, empty, file} {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-2*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	command, out := start(t, "agent", "--gossip", "127.0.0.1:0", "--", "true")
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, want := range map[string]bool{old: false, empty: false, young: true, alive: true, file: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want, reason string }{
		{"agent --socket 0.0.0.0:0", "loopback", "a socket that strangers reach"},
		{"agent --gossip nowhere", "must be HOST:PORT", "no address"},
		{"agent --min 3 --max 2 -- true", "the minimum is 3", "no view could be ready"},
		{"agent --gossip 127.0.0.1:0 -- /no/such/program", "cannot start the worker", "no worker"},
		{"agent --key-file /no/such/file", "cannot read the key", "no key"},
		{"view --socket unix:/no/such/socket", "cannot reach the agent", "no agent"},
	} {
		command, out := start(t, strings.Fields(c.args)...)
		command.Wait()
		if code := command.ProcessState.ExitCode(); code != 1 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit code %d and %q, want 1 and an error with %q", c.reason, code, out, c.want)
		}
	}
}

func TestShowAndHosts(t *testing.T) {
	t.Parallel()
	state := agent.State{Rank: 1, Ready: true, View: elastic.View{Number: 4, Lost: []string{"w2.9"}, Members: []elastic.Member{
		{ID: "w0.1", Name: "w0", Address: "10.0.0.1:50", Slots: 2}, {ID: "w1.1", Name: "w1", Address: "10.0.0.2:51"}, {ID: "w3.1", Name: "w3", Address: "10.0.0.1:52"},
	}}}
	var out bytes.Buffer
	if err := show(&out, state); err != nil {
		t.Fatal(err)
	}
	want := "view 4: ready\n0      w0   10.0.0.1:50\n1      w1   10.0.0.2:51   this worker\n2      w3   10.0.0.1:52\nlost   w2.9\n"
	if out.String() != want {
		t.Errorf("show:\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := hosts(&out, state); err != nil {
		t.Fatal(err)
	}
	if want := "10.0.0.1:3\n10.0.0.2:1\n"; out.String() != want {
		t.Errorf("hosts are %q, want %q: a host once, with all its slots", out.String(), want)
	}
}
