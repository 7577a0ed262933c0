// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"diwan.dev/diwan/observation"
)

const (
	// maxGroup bounds the changes of one transaction, so that the first does
	// not wait for an endless row of others.
	maxGroup = 256
	// maxRepeats bounds how often a transaction is tried that others are in the
	// way of.
	maxRepeats = 20
	// firstPause and longestPause bound the time between two attempts to find
	// out whether a transaction was committed.
	firstPause, longestPause = 20 * time.Millisecond, time.Second
)

// writer runs changes, those that wait in one transaction.
type writer struct {
	link     link
	requests chan request
	closing  <-chan struct{}
	done     chan struct{} // closed when the goroutine has ended
}

// change is an append, or the deletion of a source or of a whole trial.
type change struct {
	trial  observation.Trial
	batch  *observation.Batch // nil for a deletion
	source string             // what to delete; "" is every source of the trial
}

func (c change) key() sourceKey { return sourceKey{c.trial, c.batch.Source} }

type request struct {
	change
	ctx    context.Context
	result chan<- error // has room for the one result
}

func startWriter(link link, closing <-chan struct{}) *writer {
	w := &writer{link: link, requests: make(chan request, maxGroup), closing: closing, done: make(chan struct{})}
	go w.run()
	return w
}

// do hands a change over and waits until it is durable.
func (w *writer) do(ctx context.Context, c change) error {
	result := make(chan error, 1)
	select {
	case w.requests <- request{c, ctx, result}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop runs the remaining requests and releases the connection. No do may
// follow.
func (w *writer) stop() error {
	close(w.requests)
	<-w.done
	return w.link.close()
}

// run serves groups of requests. Which of them comes first does not matter:
// each caller still waits.
func (w *writer) run() {
	defer close(w.done)
	for first := range w.requests {
		var appends, deletions []request
		for _, r := range w.group(first) {
			switch err := r.ctx.Err(); {
			case err != nil:
				r.result <- err
			case r.batch != nil:
				appends = append(appends, r)
			default:
				deletions = append(deletions, r)
			}
		}
		w.commit(deletions, false)
		w.commit(appends, false)
	}
}

// group returns first and the requests that wait behind it.
func (w *writer) group(first request) []request {
	group := []request{first}
	for len(group) < maxGroup {
		select {
		case r, ok := <-w.requests:
			if !ok {
				return group
			}
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// commit runs requests of one kind in one transaction and answers them. If
// the database rejects it, each runs in its own transaction, so that only the
// faulty one fails.
func (w *writer) commit(group []request, doubt bool) {
	if len(group) == 0 {
		return
	}
	changes := make([]change, len(group))
	for i, r := range group {
		changes[i] = r.change
	}
	results, doubt, err := w.settle(changes, doubt)
	if err != nil && len(group) > 1 && w.link.dialect.Answered(err) {
		for _, r := range group {
			w.commit([]request{r}, doubt)
		}
		return
	}
	for i, r := range group {
		if err != nil {
			r.result <- err
		} else {
			r.result <- results[i]
		}
	}
}

// settle tries a transaction until its outcome is known. After an error, it has
// had no effect. doubt says that an earlier transaction with these changes may
// have been committed.
func (w *writer) settle(changes []change, doubt bool) (results []error, doubted bool, err error) {
	pause := firstPause
	for try := 0; ; try++ {
		t := transaction{link: &w.link, changes: changes, doubt: doubt}
		fresh := w.link.conn == nil
		err := t.run()
		answered := err != nil && w.link.dialect.Answered(err)
		again := answered && w.link.dialect.Repeat(err) || errors.Is(err, errAgain)
		switch {
		case err == nil:
			return t.results, doubt, nil
		case t.committing && !(answered && try >= maxRepeats):
			doubt = true
		case again && try < maxRepeats:
		case doubt && !(answered && t.planned):
			// Whether the changes were committed is not known yet.
		case !fresh && !answered && try == 0:
			continue // the connection was lost while nobody used it
		default:
			return nil, doubt, err
		}
		if !w.sleep(pause) {
			return nil, doubt, fmt.Errorf("%w before it was known whether the database committed the change: %w", observation.ErrClosed, err)
		}
		pause = min(2*pause, longestPause)
	}
}

// sleep waits, and reports false at once when the store is closed.
func (w *writer) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.closing:
		return false
	}
}
