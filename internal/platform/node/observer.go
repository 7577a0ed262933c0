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
	// HostPath is the location on this machine of a file that the container writes,
	// and HostDirectory that of a directory. own reports that it belongs only to the
	// Pod, and may be removed. A container in an image that has no volume there gets
	// one, as Katib's on a cluster: they must be called in Observe.
	HostPath, HostDirectory func(path string) (host string, own bool)
	// Within is a directory of this machine that own paths are in and that links in
	// them must not leave, since the container could not read there; "" is none.
	Within string
	// Warn reports a problem to the Pod's user, once while the message stays
	// the same.
	Warn func(message string)
}

// Observer takes what one run yields: output, files, pages that it serves. The
// node calls its methods one at a time, and Close last.
type Observer interface {
	// Look reads new output. It is called several times a second and does not
	// wait for the run. An error is reported to the user; the next call
	// retries.
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
	// Close waits for the observer's pending work, and releases its
	// resources.
	Close()
}

// unobserved is the observer of a container that nobody observes.
type unobserved struct{}

func (unobserved) Look(context.Context, time.Time) error   { return nil }
func (unobserved) Finish(context.Context, time.Time) error { return nil }
func (unobserved) Discard(context.Context) error           { return nil }
func (unobserved) Needs() int64                            { return math.MaxInt64 }
func (unobserved) Close()                                  {}
