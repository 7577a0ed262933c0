// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Observers decides which containers are observed.
type Observers interface {
	// Observe is called before a run of a container starts, and again when a
	// later node finds that run. A nil Observer means that the container is not
	// observed.
	Observe(ctx context.Context, s Subject) (Observer, error)
}

// Subject is one run of a container, as its observer sees it.
type Subject struct {
	// Pod and Container name the container. Attempt numbers its runs in the Pod
	// from 0.
	Pod       *corev1.Pod
	Container string
	Attempt   int
	// Address is the IP address at which this process reaches the ports of the
	// Pod's programs.
	Address string
	// Output is the file on this machine that holds standard output and error.
	// The bytes before OutputStart() are no longer kept and read as zeros.
	Output      string
	OutputStart func() int64
	// HostPath is where a path inside the container lies on this machine. own
	// says that it is among what the Pod alone has, and may be removed.
	HostPath func(path string) (host string, own bool)
	// Warn tells the user of the Pod about a problem, once while the message
	// stays the same.
	Warn func(message string)
}

// Observer takes what one run yields: output, files, pages that it serves. The
// node calls its methods one at a time, and Close last.
type Observer interface {
	// Look takes what is new. It is called several times a second and does not
	// wait for the run. An error is told to the user; the next call tries again.
	Look(ctx context.Context, now time.Time) error
	// Finish takes the rest: the run has ended. When it returns nil, all is
	// durable; only then does the node report the container as terminated. After
	// an error it is called again.
	Finish(ctx context.Context, now time.Time) error
	// Discard forgets the run: it was interrupted by the node's own end, and the
	// container runs again from the start.
	Discard(ctx context.Context) error
	// Needs is the offset of the first byte of the output that the observer has
	// yet to read, which is kept until then; math.MaxInt64 where it reads none.
	Needs() int64
	// Close waits for what the observer still does, and lets go of it.
	Close()
}

// unobserved is the observer of a container that nobody observes.
type unobserved struct{}

func (unobserved) Look(context.Context, time.Time) error   { return nil }
func (unobserved) Finish(context.Context, time.Time) error { return nil }
func (unobserved) Discard(context.Context) error           { return nil }
func (unobserved) Needs() int64                            { return math.MaxInt64 }
func (unobserved) Close()                                  {}
