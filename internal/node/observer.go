// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Observers decides which containers are observed.
type Observers interface {
	// Observe is called before a run of a container starts, and again when a
	// later node finds that run. attempt numbers the runs of a container of one
	// Pod from 0. A nil Observer means that the container is not observed.
	Observe(ctx context.Context, pod *corev1.Pod, container string, attempt int) (Observer, error)
}

// Observer receives the bytes of one run's output, or of a file that it writes.
// The node calls its methods one at a time.
type Observer interface {
	// Path is the absolute path of the file inside the container; "" means
	// standard output and error.
	Path() string
	// Offset is the first byte that is not yet durably taken.
	Offset(ctx context.Context) (int64, error)
	// Write takes bytes of the output that begin at offset and were read at the
	// time at. Calls follow each other without gaps, starting at Offset, except
	// where retention dropped bytes before they could be read.
	Write(ctx context.Context, offset int64, p []byte, at time.Time) error
	// Finish says that the output is complete. When it returns, all is durable;
	// only then does the node report the container as terminated.
	Finish(ctx context.Context) error
	// Discard forgets the run: it was interrupted by the node's own end, and the
	// container runs again from the start.
	Discard(ctx context.Context) error
}
