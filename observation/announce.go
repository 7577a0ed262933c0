// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"context"
	"sync"
)

// Announcer notifies listeners that a trial has reported something.
type Announcer interface {
	// Listen has f called after points of a trial were stored, until stop is
	// called. f must return soon, and may be called by several goroutines at
	// once.
	Listen(f func(Trial)) (stop func())
}

// Announced is a Store that is an [Announcer] of what is appended through it.
// Others may append to the same database; to see everything, poll, and listen
// to be faster.
type Announced struct {
	Store

	mu        sync.RWMutex
	listeners map[int]func(Trial)
	next      int
}

var _ Announcer = (*Announced)(nil)

// Announce returns a store that announces what is appended to s.
func Announce(s Store) *Announced {
	return &Announced{Store: s, listeners: map[int]func(Trial){}}
}

// Append implements [Store].
func (a *Announced) Append(ctx context.Context, t Trial, b Batch) error {
	if err := a.Store.Append(ctx, t, b); err != nil || len(b.Points) == 0 {
		return err
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, f := range a.listeners {
		f(t)
	}
	return nil
}

// Listen implements [Announcer].
func (a *Announced) Listen(f func(Trial)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := a.next
	a.next++
	a.listeners[id] = f
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listeners, id)
	}
}
