// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Subject is one run of a container whose metrics are to be collected.
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
	// The bytes before OutputStart() are no longer kept.
	Output      string
	OutputStart func() int64
	// HostPath is the location on this machine of a file that the container writes,
	// and HostDirectory that of a directory. own reports that it belongs only to the
	// Pod, and may be removed.
	HostPath, HostDirectory func(path string) (host string, own bool)
	// Within is a directory of this machine that own paths are in and that links in
	// them must not leave, since the container could not read there; "" is none.
	Within string
	// Warn reports a problem to the Pod's user, once while the message stays
	// the same.
	Warn func(message string)
}

// Observer stores the metrics of one run of a container. Its methods are called
// one at a time.
type Observer interface {
	// Look reads new output, at the time now. It does not wait for the run.
	// After an error the next call retries.
	Look(ctx context.Context, now time.Time) error
	// Finish takes the rest: the run has ended. When it returns nil, every
	// metric is stored. After an error it may be called again.
	Finish(ctx context.Context, now time.Time) error
	// Discard forgets the run, which will start over.
	Discard(ctx context.Context) error
	// Needs is the offset of the first byte of the output that is yet to be
	// read; math.MaxInt64 where none is read.
	Needs() int64
	// Close waits for the observer's pending work, and releases its
	// resources.
	Close()
}
