// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/internal/platform/node/container"
)

func TestExec(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", "echo up; sleep 1000")
	spec.Env = append(spec.Env, "WHO=me")
	spec.Dir = "/made/here"
	spec.Hostname = "pod"
	run := start(t, r, spec)
	awaitText(t, spec.Log, "up")
	t.Run("streams and code", func(t *testing.T) {
		var out, errs bytes.Buffer
		err := run.Exec(t.Context(), []string{"sh", "-c", "cat; echo $WHO; pwd; hostname; echo bad >&2; exit 9"},
			container.Streams{Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs})
		var exit *container.ExitError
		if !errors.As(err, &exit) || exit.Code != 9 {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff("in\nme\n/made/here\npod\n", out.String()); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		if errs.String() != "bad\n" {
			t.Errorf("errors: %q", errs.String())
		}
	})
	t.Run("processes", func(t *testing.T) {
		out, err := execute(t, run, "sh", "-c", "ps -o pid,args; ls /proc/self/fd | wc -l")
		if err != nil || !strings.Contains(out, "sleep 1000") || !strings.HasSuffix(out, "\n4\n") {
			t.Errorf("got %v, %q", err, out)
		}
	})
	t.Run("rights", func(t *testing.T) {
		const look = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/%s/status"
		first, err := execute(t, run, "sh", "-c", strings.ReplaceAll(look, "%s", "1"))
		if err != nil {
			t.Fatal(err, first)
		}
		second, err := execute(t, run, "sh", "-c", strings.ReplaceAll(look, "%s", "self"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" || !strings.Contains(first, "Seccomp:\t2") {
			t.Errorf("the command has other rights than the program (-program +command):\n%s\nof %s", diff, first)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		sizes := make(chan [2]uint16, 1)
		defer close(sizes)
		sizes <- [2]uint16{123, 45}
		var out bytes.Buffer
		err := run.Exec(t.Context(), []string{"sh", "-c", "while ! stty size 2>/dev/null | grep -q 123; do :; done; stty size; tty; echo x >$(tty); echo y >/dev/tty; ls /dev/pts"},
			container.Streams{Stdout: &out, TTY: true, Resize: sizes})
		if want := "45 123\r\n/dev/pts/0\r\nx\r\ny\r\n0     ptmx\r\n"; err != nil || strings.Join(strings.Fields(out.String()), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("got %v, %q", err, out.String())
		}
	})
	t.Run("input of a terminal", func(t *testing.T) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		defer write.Close()
		write.WriteString("echo $((6*7)); exit 5\r")
		var out bytes.Buffer
		err = run.Exec(t.Context(), []string{"sh"}, container.Streams{Stdin: read, Stdout: &out, TTY: true})
		var exit *container.ExitError
		if !errors.As(err, &exit) || exit.Code != 5 || !strings.Contains(out.String(), "42") {
			t.Errorf("got %v, %q", err, out.String())
		}
	})
	t.Run("a left child does not hold it", func(t *testing.T) {
		if out, err := execute(t, run, "sh", "-c", "sleep 1000 & echo x"); err != nil || out != "x\n" {
			t.Errorf("got %v, %q", err, out)
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		defer write.Close()
		go func() { bufio.NewReader(read).ReadString('\n'); cancel() }()
		if err := run.Exec(ctx, []string{"sh", "-c", "echo up; exec sleep 1234"}, container.Streams{Stdout: write}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		for {
			if out, err := execute(t, run, "ps", "-o", "args"); err != nil || !strings.Contains(out, "1234") {
				break
			}
		}
	})
	t.Run("missing program", func(t *testing.T) {
		if _, err := execute(t, run, "no-such"); err == nil || !strings.Contains(err.Error(), "no-such") {
			t.Errorf("got %v", err)
		}
	})
	run.Kill()
	await(t, run)
	if _, err := execute(t, run, "true"); err == nil {
		t.Error("a command runs beside a program that has ended")
	}
}

func TestUserExec(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", "echo up; sleep 1000")
	spec.User = &container.User{UID: 1234, GID: 2345}
	run := start(t, r, spec)
	awaitText(t, spec.Log, "up")
	if out, err := execute(t, run, "sh", "-c", "id -u; id -g; grep CapEff /proc/self/status"); err != nil || out != "1234\n2345\nCapEff:\t0000000000000000\n" {
		t.Errorf("got %v, %q", err, out)
	}
}
