// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"diwan.dev/diwan/internal/tuning/dbmanager/remotestore"
	"diwan.dev/diwan/observation"
)

// warner reports a problem to the users of a trial where they look: in events
// of the trial.
type warner interface {
	Warn(ctx context.Context, t observation.Trial, message string) error
}

// warnings are logged at once, and reported to the users of the trial when the
// store is reachable.
type warnings struct {
	trial observation.Trial
	to    warner // nil: nobody but the log is told
	log   io.Writer

	mu      sync.Mutex
	said    string
	pending []string
	after   time.Time // when to retry
}

// maxPending bounds the warnings that wait; those that came first count.
const maxPending = 10

// add takes a warning, unless it is the same as the last one.
func (w *warnings) add(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if message == w.said {
		return
	}
	w.said = message
	fmt.Fprintln(w.log, "diwan:", message)
	if w.to != nil && len(w.pending) < maxPending {
		w.pending = append(w.pending, message)
	}
}

// send passes on what waits. What cannot be is retried later, a second after
// the last time; last says that there is no later.
func (w *warnings) send(ctx context.Context, last bool) {
	for {
		w.mu.Lock()
		if len(w.pending) == 0 || (!last && time.Now().Before(w.after)) {
			w.mu.Unlock()
			return
		}
		message := w.pending[0]
		w.mu.Unlock()
		err := w.to.Warn(ctx, w.trial, message)
		w.mu.Lock()
		if err != nil && !errors.Is(err, remotestore.ErrEnded) {
			w.after = time.Now().Add(time.Second)
			w.mu.Unlock()
			return
		}
		w.pending = w.pending[1:]
		w.mu.Unlock()
	}
}
