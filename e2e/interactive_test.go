// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// session is a kubectl that a user sits before.
type session struct {
	t        *testing.T
	cmd      *exec.Cmd
	terminal *os.File // nil without one
	in       io.WriteCloser
	screen   *lockedBuffer
	shown    chan struct{} // closed when the terminal has shown all
}

// command is kubectl on the server.
func (s *server) command(t *testing.T, args ...string) *session {
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "DIWAN_HOME="+s.home)
	return &session{t: t, cmd: cmd, screen: &lockedBuffer{}, shown: make(chan struct{})}
}

// onTerminal starts kubectl on a terminal.
func (s *server) onTerminal(t *testing.T, args ...string) *session {
	t.Helper()
	c := s.command(t, args...)
	var err error
	if c.terminal, err = pty.StartWithSize(c.cmd, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.terminal.Close() })
	c.in = c.terminal
	go func() {
		defer close(c.shown)
		io.Copy(c.screen, c.terminal) // until kubectl is gone
	}()
	return c
}

// onPipe starts kubectl with pipes.
func (s *server) onPipe(t *testing.T, args ...string) *session {
	t.Helper()
	c := s.command(t, args...)
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.cmd.Stderr = c.screen, c.screen
	close(c.shown)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *session) types(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *session) sees(text string) {
	c.t.Helper()
	eventually(c.t, time.Minute, func() error {
		if !strings.Contains(c.screen.String(), text) {
			return fmt.Errorf("kubectl does not show %q:\n%s", text, c.screen)
		}
		return nil
	})
}

// ends waits for kubectl's end with a code.
func (c *session) ends(code int) {
	c.t.Helper()
	err := c.cmd.Wait()
	<-c.shown
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || c.cmd.ProcessState.ExitCode() != code {
		c.t.Errorf("kubectl ended with %v, want code %d:\n%s", err, code, c.screen)
	}
}

// testInteractive sits before containers.
func testInteractive(t *testing.T, s *server) {
	run := s.onPipe(t, "run", "piped", "--rm", "-i", "--image=busybox", "--restart=Never", "--", "sh", "-c", "cat; echo over; exit 5")
	run.types("one\n")
	run.sees("one")
	run.in.Close()
	run.sees("over")
	run.ends(5)

	run = s.onTerminal(t, "run", "seated", "--rm", "-it", "--image=busybox", "--restart=Never")
	run.types("stty size; test -t 1 && echo $TERM-$((1+1))\r")
	run.sees("33 77")
	run.sees("xterm-2")
	if err := pty.Setsize(run.terminal, &pty.Winsize{Rows: 44, Cols: 99}); err != nil {
		t.Fatal(err)
	}
	run.types("until [ \"$(stty size)\" = '44 99' ]; do sleep 0.01; done; echo $((2+1)) resized\r")
	run.sees("3 resized")
	run.types("sleep 1000\r")
	run.sees("sleep 1000")
	run.types("\x03exit 3\r")
	run.ends(3)
}

// testAttach leaves a container and comes back to it.
func testAttach(t *testing.T, s *server) {
	s.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: attached}
spec:
  restartPolicy: Never
  containers: [{name: main, image: busybox, stdin: true, command: [sh, -c, 'while read -r line; do [ $line = stop ] && break; echo "got $line"; done']}]
`)
	s.phase(t, pods, "attached", "Running")
	for _, line := range []string{"one", "two"} {
		attach := s.onPipe(t, "attach", "attached", "-i")
		attach.types(line + "\n")
		attach.sees("got " + line)
		attach.cmd.Process.Kill()
		attach.cmd.Wait()
	}
	attach := s.onPipe(t, "attach", "attached", "-i")
	attach.types("stop\n")
	attach.ends(0)
	s.phase(t, pods, "attached", "Succeeded")
}

// testDebug debugs a Pod with an ephemeral container.
func testDebug(t *testing.T, s *server) {
	s.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: debugged}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: busybox, command: [sleep, "1000"]}]
`)
	s.phase(t, pods, "debugged", "Running")
	debug := s.onTerminal(t, "debug", "-it", "debugged", "--image=busybox", "--target=main", "-c", "debugger")
	debug.sees("command prompt")
	debug.types("hostname; echo $((1+1)) hosts\r")
	debug.sees("debugged\r\n2 hosts")
	debug.types("exit\r")
	debug.ends(0)
	eventually(t, time.Minute, func() error {
		pod, err := s.client().Resource(pods).Namespace("default").Get(t.Context(), "debugged", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := fmt.Sprint(pod.Object["status"])
		if !strings.Contains(status, "ephemeralContainerStatuses") || !strings.Contains(status, "Completed") || !strings.Contains(status, "phase:Running") {
			return fmt.Errorf("the Pod does not show a debugger that has ended: %s", status)
		}
		return nil
	})
	if stdout, stderr, code := s.diwan("kubectl", "delete", "pod/debugged"); code != 0 {
		t.Errorf("kubectl delete: exit code %d\n%s%s", code, stdout, stderr)
	}
}
