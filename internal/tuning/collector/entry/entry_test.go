// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test binary the program itself.
const asProgram = "DIWAN_ENTRY_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func install(t *testing.T) Dir {
	t.Helper()
	dir := Dir(t.TempDir())
	if out, err := program(t, "install", string(dir)).CombinedOutput(); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	return dir
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason  string
		before  string // in the output file
		command []string
		code    int
		out     string // printed and kept
		err     string // said by the program itself
	}{
		"Both":       {"both outputs, in their order", "", []string{"sh", "-c", "echo a; echo b >&2; echo c"}, 0, "a\nb\nc\n", ""},
		"Code":       {"the program's exit code", "", []string{"sh", "-c", "exit 7"}, 7, "", ""},
		"Signal":     {"128 and the signal", "", []string{"sh", "-c", "kill -KILL $$"}, 137, "", ""},
		"Args":       {"arguments as they are", "", []string{"printf", "%s|", "", "a b", "$X", "`"}, 0, "|a b|$X|`|", ""},
		"Unended":    {"a line of an earlier run gets its end", "loss=1", []string{"echo", "loss=2"}, 0, "loss=2\n", ""},
		"Child":      {"a process that outlives the program is not waited for", "", []string{"sh", "-c", "sleep 100 & echo done"}, 0, "done\n", ""},
		"NotFound":   {"no such program", "", []string{"no-such-program"}, 127, "", "cannot run no-such-program"},
		"NoProgram":  {"no program", "", []string{"/etc/passwd"}, 126, "", "cannot run /etc/passwd"},
		"Much":       {"more than a pipe holds", "", []string{"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"}, 0, strings.Repeat("x", 1000000), ""},
		"Impatience": {"the collector does not answer", "", []string{"true"}, 0, "", "not stored within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := install(t)
			if err := os.WriteFile(dir.Output(), []byte(c.before), 0o644); err != nil {
				t.Fatal(err)
			}
			answer(t, dir, name != "Impatience")
			var out, said bytes.Buffer
			cmd := exec.Command(dir.Program(), append([]string{"run", string(dir), "100ms"}, c.command...)...)
			if name != "Impatience" {
				cmd.Args[3] = "1m"
			}
			cmd.Env = append(os.Environ(), asProgram+"=1")
			cmd.Stdout, cmd.Stderr = &out, &said
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("%s: exit code %d, want %d", c.reason, code, c.code)
			}
			kept, err := os.ReadFile(dir.Output())
			if err != nil {
				t.Fatal(err)
			}
			want := c.before
			if want != "" {
				want += "\n"
			}
			if want += c.out; out.String() != c.out || string(kept) != want {
				t.Errorf("%s: printed %.200q and kept %.200q, want %.200q", c.reason, out.String(), kept, c.out)
			}
			if c.err == "" && said.Len() > 0 || !strings.Contains(said.String(), c.err) {
				t.Errorf("%s: it says %q, want %q", c.reason, said.String(), c.err)
			}
		})
	}
}

// answer says to the program that all is stored, as a collector does.
func answer(t *testing.T, dir Dir, answers bool) {
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(done)
		for answers {
			if run, _ := dir.Ended(); run != "" {
				_ = dir.Stored(run)
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
}

// TestSignals wants signals to reach the program, and the wait for the collector
// to come after that.
func TestSignals(t *testing.T) {
	t.Parallel()
	dir := install(t)
	cmd := exec.Command(dir.Program(), "run", string(dir), "1m", "sh", "-c", `trap "echo term; exit 3" TERM; echo ready; while :; do sleep 0.01; done`)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { text, _ := os.ReadFile(dir.Output()); return string(text) == "ready\n" })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var run string
	until(t, func() bool { run, _ = dir.Ended(); return run != "" })
	if text, _ := os.ReadFile(dir.Output()); string(text) != "ready\nterm\n" {
		t.Errorf("when the run has ended, the output is %q", text)
	}
	if err := dir.Stored("another"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it ended before all was stored: %v", err)
	}
	if err := dir.Stored(run); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to that")
		}
	}
}

// TestInstallAgain keeps what was printed, as when the collector starts again.
func TestInstallAgain(t *testing.T) {
	t.Parallel()
	dir := install(t)
	if err := os.WriteFile(dir.Output(), []byte("loss=1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	if err := dir.Install(self); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(dir.Output()); string(text) != "loss=1\n" {
		t.Errorf("the output is %q", text)
	}
	if err := Dir(filepath.Join(string(dir), "missing")).Install(self); err == nil {
		t.Error("a directory that is not there is no error")
	}
}
