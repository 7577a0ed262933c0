// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// ErrNotFound is returned (wrapped) by a Backend for an unknown Pod,
// container or previous run; clients then see 404.
var ErrNotFound = errors.New("not found")

// Backend is the node as the server sees it. Its methods may be called from
// several goroutines.
type Backend interface {
	// Pods returns the Pods of this node; the caller does not change them.
	Pods() []*corev1.Pod

	// Log finds the output of a container's current run, or of the run before
	// it when previous is set.
	Log(ctx context.Context, namespace, pod, container string, previous bool) (LogFile, error)

	// Exec runs a command in a running container and returns when it has ended
	// and its output is written. A non-zero exit is an error that has a method
	// ExitStatus() int or ExitCode() int, as *exec.ExitError has.
	Exec(ctx context.Context, namespace, pod, container string, command []string, streams Streams) error

	// Attach connects to a running container until it ends or ctx is done.
	Attach(ctx context.Context, namespace, pod, container string, streams Streams) error

	// DialPort connects to a TCP port inside the Pod.
	DialPort(ctx context.Context, namespace, pod string, port uint16) (net.Conn, error)

	// Usage returns what the containers use now.
	Usage(ctx context.Context) ([]Usage, error)
}

// LogFile is where the output of one run of a container lies.
type LogFile struct {
	// Path is the log of package containerlog.
	Path string
	// Ended is closed when the container has ended and its output is complete.
	Ended <-chan struct{}
}

// Size is a terminal's size in characters.
type Size = remotecommand.TerminalSize

// Streams are the ends of an exec or attach session. Each stream may be nil. With TTY set,
// Stderr is nil and Resize yields the terminal's size as it changes; it is
// closed when the client is gone.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Resize         <-chan Size
}

// Usage is what a container has used.
type Usage struct {
	Namespace, Pod, PodUID, Container string
	// Started is when the container's current run started.
	Started time.Time
	// CPU is the CPU time used since the start.
	CPU time.Duration
	// Memory is the working set in bytes.
	Memory uint64
}
