// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// protocols are the versions of the remote command protocol that go through SPDY.
var protocols = []string{
	remotecommand.StreamProtocolV4Name, remotecommand.StreamProtocolV3Name,
	remotecommand.StreamProtocolV2Name, remotecommand.StreamProtocolV1Name,
}

// target is the Pod that a session is about, for the interfaces of the streaming library.
type target struct {
	server         *Server
	namespace, pod string
}

func (s *Server) target(r *http.Request) *target {
	return &target{server: s, namespace: r.PathValue("namespace"), pod: r.PathValue("pod")}
}

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		fail(w, err, http.StatusBadRequest)
		return
	}
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		fail(w, errors.New("you must specify a command"), http.StatusBadRequest)
		return
	}
	r, cancel := s.sessionContext(r)
	defer cancel()
	remotecommand.ServeExec(w, r, s.target(r), r.PathValue("pod"), r.PathValue("uid"), r.PathValue("container"),
		command, options, s.cfg.StreamIdle, s.cfg.StreamCreation, protocols)
}

// ExecInContainer implements remotecommand.Executor.
func (t *target) ExecInContainer(ctx context.Context, _, _, container string, command []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan Size, _ time.Duration) error {
	err := t.server.cfg.Backend.Exec(ctx, t.namespace, t.pod, container, command, streams(in, out, errOut, tty, resize))
	return exitStatus(err)
}

// exitStatus turns the error of a command that ran and failed into the one
// that the streaming library passes on as an exit code.
func exitStatus(err error) error {
	var status interface {
		error
		ExitStatus() int
	}
	var process interface { // *exec.ExitError
		error
		ExitCode() int
	}
	switch {
	case errors.As(err, &status):
		return utilexec.CodeExitError{Err: err, Code: status.ExitStatus()}
	case errors.As(err, &process) && process.ExitCode() >= 0:
		return utilexec.CodeExitError{Err: err, Code: process.ExitCode()}
	}
	return err
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		fail(w, err, http.StatusBadRequest)
		return
	}
	r, cancel := s.sessionContext(r)
	defer cancel()
	remotecommand.ServeAttach(w, r, s.target(r), r.PathValue("pod"), r.PathValue("uid"), r.PathValue("container"),
		options, s.cfg.StreamIdle, s.cfg.StreamCreation, protocols)
}

// AttachContainer implements remotecommand.Attacher.
func (t *target) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan Size) error {
	return t.server.cfg.Backend.Attach(ctx, t.namespace, t.pod, container, streams(in, out, errOut, tty, resize))
}

func streams(in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan Size) Streams {
	s := Streams{Stdin: in, TTY: tty, Resize: resize}
	if out != nil {
		s.Stdout = out
	}
	if errOut != nil {
		s.Stderr = errOut
	}
	return s
}

func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		fail(w, err, http.StatusBadRequest)
		return
	}
	r, cancel := s.sessionContext(r)
	defer cancel()
	portforward.ServePortForward(w, r, s.target(r), r.PathValue("pod"), r.PathValue("uid"),
		options, s.cfg.StreamIdle, s.cfg.StreamCreation, portforward.SupportedProtocols)
}

// PortForward implements portforward.PortForwarder. It returns when the Pod
// has ended the connection: clients wait for that before they close theirs.
func (t *target) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("cannot forward port %d: want 1 to 65535", port)
	}
	conn, err := t.server.cfg.Backend.DialPort(ctx, t.namespace, t.pod, uint16(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	t.server.sessions.Go(func() {
		// This ends when the client closes its stream or is gone.
		if _, err := io.Copy(conn, stream); err != nil {
			conn.Close()
			return
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	})
	_, err = io.Copy(stream, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil // the client went first
	}
	return err
}
