// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"diwan.dev/diwan/internal/platform/node/container"
)

// attach connects to a run's input.
func attach(t *testing.T, run container.Run) container.Input {
	t.Helper()
	input, err := run.Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close() })
	return input
}

func send(t *testing.T, input container.Input, text string) {
	t.Helper()
	if _, err := input.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", `echo begun; while read -r line; do echo "got $line"; done; echo over`)
	spec.Stdin, spec.StdinOnce = true, true
	spec.User = &container.User{UID: 1000, GID: 1000}
	run := start(t, r, spec)
	awaitText(t, spec.Log, "begun")
	input := attach(t, run)
	send(t, input, "one\n")
	awaitText(t, spec.Log, "got one")
	input.Close()
	if exit := await(t, run); exit.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
	awaitText(t, spec.Log, "over")
}

// TestNoInput holds that a run that does not ask for input has none.
func TestNoInput(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", "read -r line || echo nothing; sleep 1000")
	run := start(t, r, spec)
	awaitText(t, spec.Log, "nothing")
	if _, err := run.Attach(t.Context()); err == nil {
		t.Error("its input can be attached to")
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", `
		test -t 0 && test -t 1 && test -t 2 && echo all terminals </dev/tty
		echo console >/dev/console
		trap 'stty size' WINCH
		trap 'echo interrupted; seq 1 20000; exit 7' INT
		echo ready
		while :; do read -r line && echo "got $line"; done`)
	spec.Stdin, spec.StdinOnce, spec.TTY = true, true, true
	run := start(t, r, spec)
	awaitText(t, spec.Log, "ready")
	awaitText(t, spec.Log, "all terminals")
	awaitText(t, spec.Log, "console")
	first := attach(t, run)
	send(t, first, "one\r")
	awaitText(t, spec.Log, "got one")
	first.Close()
	second := attach(t, run) // a terminal outlives its first session
	if err := second.Resize(132, 43); err != nil {
		t.Fatal(err)
	}
	send(t, second, "\r") // lets the shell see the signal
	awaitText(t, spec.Log, "43 132")
	send(t, second, "\x03")
	if exit := await(t, run); exit.Code != 7 {
		t.Errorf("exit %+v", exit)
	}
	text, err := os.ReadFile(spec.Log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "20000\r\n"; len(text) < len(want) || string(text[len(text)-len(want):]) != want {
		t.Errorf("the end of the output is lost: %q", text[max(0, len(text)-100):])
	}
}

// TestInputSurvives holds that input and terminal outlive the process that started the run.
func TestInputSurvives(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "pods")
	o := startOwner(t, dir)
	pipe := specFor(t, "sh", "-c", `echo begun; read -r line; echo "got $line"; cat >/dev/null; echo over`)
	pipe.Stdin, pipe.StdinOnce = true, true
	terminal := specFor(t, "sh", "-c", `echo begun; read -r line; echo "got $line"; exit 3`)
	terminal.Stdin, terminal.TTY = true, true
	for _, spec := range []container.Spec{pipe, terminal} {
		o.start(t, spec)
		awaitText(t, spec.Log, "begun")
	}
	o.kill()
	r, err := New(testConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	runs, err := r.Recover(t.Context())
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs are recovered (%v)", len(runs), err)
	}
	for _, run := range runs {
		input := attach(t, run)
		send(t, input, "one\n")
		awaitText(t, run.Spec().Log, "got one")
		input.Close()
		code := int32(0)
		if run.Spec().TTY {
			code = 3
		}
		if exit := await(t, run); exit.Outcome != container.Exited || exit.Code != code {
			t.Errorf("exit %+v, want code %d", exit, code)
		}
		if err := run.Remove(); err != nil {
			t.Error(err)
		}
	}
	awaitText(t, pipe.Log, "over")
}
