// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

func (n *node) executor(t *testing.T, path string, query url.Values) remotecommand.Executor {
	t.Helper()
	u, err := url.Parse(n.url + path + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	e, err := remotecommand.NewSPDYExecutor(n.rest(t), http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExec(t *testing.T) {
	t.Parallel()
	n := serve(t)
	tests := []struct {
		reason, path         string
		command              []string
		stdin, out, errorOut string
		code                 int
	}{
		{"output and error are kept apart", "/exec/ns/pod/main", []string{"sh", "-c", "echo out; echo err >&2"}, "", "out\n", "err\n", 0},
		{"input reaches the program to its end", "/exec/ns/pod/uid/main", []string{"cat"}, strings.Repeat("line\n", 50000), strings.Repeat("line\n", 50000), "", 0},
		{"the exit code comes back", "/exec/ns/pod/main", []string{"sh", "-c", "exit 7"}, "", "", "", 7},
	}
	for _, tt := range tests {
		var out, errorOut bytes.Buffer
		q := url.Values{"command": tt.command, "output": {"1"}, "error": {"1"}}
		options := remotecommand.StreamOptions{Stdout: &out, Stderr: &errorOut}
		if tt.stdin != "" {
			q.Set("input", "1")
			options.Stdin = strings.NewReader(tt.stdin)
		}
		err := n.executor(t, tt.path, q).StreamWithContext(t.Context(), options)
		code := 0
		var exit utilexec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitStatus()
		} else if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if out.String() != tt.out || errorOut.String() != tt.errorOut || code != tt.code {
			t.Errorf("%s: got %d bytes of output, error %q, code %d", tt.reason, out.Len(), errorOut.String(), code)
		}
	}
}

// exitStatus7 is an exit code as backends may tell it.
type exitStatus7 struct{}

func (exitStatus7) Error() string   { return "command terminated with exit code 7" }
func (exitStatus7) ExitStatus() int { return 7 }

func TestExitStatus(t *testing.T) {
	t.Parallel()
	var known utilexec.ExitError
	for _, err := range []error{exitStatus7{}, fmt.Errorf("wrapped: %w", exitStatus7{})} {
		if !errors.As(exitStatus(err), &known) || known.ExitStatus() != 7 {
			t.Errorf("%v: got %v, want the exit code 7", err, exitStatus(err))
		}
	}
	if err := errors.New("no process"); exitStatus(err) != err {
		t.Error("an error that is no exit code changed")
	}
}

func TestExecInUnknownContainer(t *testing.T) {
	t.Parallel()
	n := serve(t)
	e := n.executor(t, "/exec/ns/pod/none", url.Values{"command": {"id"}, "output": {"1"}})
	err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "container none of Pod pod: not found") {
		t.Errorf("got %v, want the backend's error", err)
	}
}

func TestExecEndsWithItsClient(t *testing.T) {
	t.Parallel()
	n := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	e := n.executor(t, "/exec/ns/pod/main", url.Values{"command": {"sh", "-c", "echo on; exec sleep 1000"}, "output": {"1"}})
	out := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	if err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for ended := 0; ended == 0; {
		n.mu.Lock()
		ended = n.ended
		n.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("the command outlives its client")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestStopEndsSessions(t *testing.T) {
	t.Parallel()
	n := serve(t)
	e := n.executor(t, "/exec/ns/pod/main", url.Values{"command": {"sh", "-c", "echo on; exec sleep 1000"}, "output": {"1"}})
	on := make(chan struct{})
	done := make(chan error)
	go func() {
		out := writerFunc(func(p []byte) (int, error) { close(on); return len(p), nil })
		done <- e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: out})
	}()
	<-on
	n.stop()
	<-done
}

func TestAttach(t *testing.T) {
	t.Parallel()
	n := serve(t)
	var out bytes.Buffer
	e := n.executor(t, "/attach/ns/pod/main", url.Values{"input": {"1"}, "output": {"1"}})
	err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
	if err != nil || out.String() != "attached\nhello" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestExecOverWebSocket(t *testing.T) {
	t.Parallel()
	n := serve(t)
	dialer := websocket.Dialer{
		TLSClientConfig: &tls.Config{RootCAs: n.authority.pool(), Certificates: []tls.Certificate{n.good}},
		Subprotocols:    []string{"v4.channel.k8s.io"},
	}
	u := strings.Replace(n.url, "https", "wss", 1) + "/exec/ns/pod/main?command=echo&command=hello&output=1"
	conn, _, err := dialer.Dial(u, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	channels := map[byte]string{}
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			break
		}
		if len(message) > 0 {
			channels[message[0]] += string(message[1:])
		}
	}
	if channels[1] != "hello\n" || !strings.Contains(channels[3], "Success") {
		t.Errorf("got output %q and status %q", channels[1], channels[3])
	}
}

func TestPortForward(t *testing.T) {
	t.Parallel()
	n := serve(t)
	// The Pod's program answers when it has heard all.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			heard, _ := io.ReadAll(c)
			c.Write(bytes.ToUpper(heard))
			c.Close()
		}
	}()
	transport, upgrader, err := spdy.RoundTripperFor(n.rest(t))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(n.url + "/portForward/ns/pod")
	if err != nil {
		t.Fatal(err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	stop, ready := make(chan struct{}), make(chan struct{})
	port := l.Addr().(*net.TCPAddr).Port
	forwarder, err := portforward.New(dialer, []string{"0:" + strconv.Itoa(port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(int(ports[0].Local)))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "hello")
		conn.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(conn); err != nil || string(got) != "HELLO" {
			t.Errorf("got %q, %v", got, err)
		}
		conn.Close()
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzLogQuery(f *testing.F) {
	f.Add("follow=true&tailLines=3&sinceSeconds=9223372036854775807")
	f.Add("sinceTime=2026-01-02T03:05:00Z&limitBytes=1")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		now := time.Unix(1e9, 0)
		got, err := parseLogQuery(q, now)
		if err == nil && (got.Tail < -1 || got.Limit < 0 || q.Has("sinceSeconds") && q.Get("sinceSeconds") != "" && got.Since.After(now)) {
			t.Errorf("%q: accepted as %+v", text, got)
		}
	})
}
