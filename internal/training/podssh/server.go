// SPDX-License-Identifier: Apache-2.0

package podssh

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// handshakeTime bounds how long a client may take to show who it is.
const handshakeTime = 30 * time.Second

// Server runs commands for those who have the key of a directory.
type Server struct {
	config *ssh.ServerConfig
}

// NewServer returns a Server with the keys of a directory, of which the private
// one is also the host's.
func NewServer(keys string) (*Server, error) {
	key, err := readKey(keys)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: authorized(keys), MaxAuthTries: 3}
	config.AddHostKey(key)
	return &Server{config}, nil
}

// Serve serves connections until ctx ends, and closes the listener. Processes
// that commands left behind keep running.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("cannot accept connections: %w", err)
		}
		group.Go(func() { s.serve(ctx, conn) })
	}
}

// serve serves one connection.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(handshakeTime))
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // a probe, or somebody without the key
	}
	conn.SetDeadline(time.Time{})
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { ssh.DiscardRequests(requests) })
	for c := range channels {
		if c.ChannelType() != "session" {
			c.Reject(ssh.UnknownChannelType, "only commands can be run")
			continue
		}
		channel, asked, err := c.Accept()
		if err != nil {
			return
		}
		group.Go(func() { session(ctx, channel, asked) })
	}
}

// session serves the requests of one session, at most one of which is a
// command.
func session(ctx context.Context, channel ssh.Channel, asked <-chan *ssh.Request) {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the client is gone
	begun := false
	for r := range asked {
		var command struct{ Text string }
		ok := r.Type == "exec" && !begun && ssh.Unmarshal(r.Payload, &command) == nil
		if r.WantReply {
			r.Reply(ok, nil)
		}
		if ok {
			begun = true
			group.Go(func() {
				code := execute(ctx, command.Text, channel, &group)
				channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
				channel.Close()
			})
		}
	}
}

// leftover is how long the output of what a command left behind is waited for,
// and how long a command may take to end when the client is gone.
const leftover = time.Second

// execute runs a command by the shell, and returns its exit code. group waits for
// its input, which ends with the channel.
func execute(ctx context.Context, text string, channel ssh.Channel, group *sync.WaitGroup) uint32 {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP) }
	cmd.WaitDelay = leftover
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintf(channel.Stderr(), "sshd: cannot run the command: %v\n", err)
		return Failed
	}
	group.Go(func() {
		io.Copy(stdin, channel)
		stdin.Close()
	})
	cmd.Wait() // how it ended is in its state
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + uint32(status.Signal())
	}
	return uint32(cmd.ProcessState.ExitCode())
}
