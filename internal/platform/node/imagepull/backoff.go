// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"sync"
	"time"
)

// The pauses of a kubelet between attempts to pull an image for a Pod.
const (
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
)

// pause is how long to wait after the nth failure, from 1.
func pause(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 8), longestPause)
}

// attempt is what failed of a Pod's image.
type attempt struct {
	failures int
	next     time.Time
	err      *Error
}

// backoff remembers failures by Pod and image.
type backoff struct {
	mu       sync.Mutex
	attempts map[string]attempt
}

// waiting returns the last failure if it is too early for another attempt, and how
// long it still is.
func (b *backoff) waiting(key string, now time.Time) (*Error, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.attempts[key]
	if !ok || !now.Before(a.next) {
		return nil, 0
	}
	return a.err, a.next.Sub(now)
}

// failed notes a failure and returns the pause after it.
func (b *backoff) failed(key string, now time.Time, err *Error) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attempts == nil {
		b.attempts = map[string]attempt{}
	}
	// A failure is forgotten as a kubelet forgets it: after twice the longest pause.
	for k, a := range b.attempts {
		if now.Sub(a.next) > 2*longestPause {
			delete(b.attempts, k)
		}
	}
	a := b.attempts[key]
	a.failures++
	a.err, a.next = err, now.Add(pause(a.failures))
	b.attempts[key] = a
	return pause(a.failures)
}

func (b *backoff) succeeded(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.attempts, key)
}
