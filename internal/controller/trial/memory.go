// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what is known of trials beyond what is stored. Losing it delays a
// status by moments, or repeats a deletion.
type memory struct {
	mu     sync.Mutex
	trials map[types.UID]times
	// cleaned holds the trials whose run object was deleted, until the cache
	// shows it.
	cleaned map[types.UID]bool
}

// times are those of one trial.
type times struct {
	since   time.Time // when it was first seen
	observe time.Time // when its status shows again what it has reported
}

// of returns the times of a trial, which was first seen now if it is new.
func (m *memory) of(uid types.UID, now time.Time) times {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trials == nil {
		m.trials = map[types.UID]times{}
	}
	t, known := m.trials[uid]
	if !known {
		t = times{since: now, observe: now}
		m.trials[uid] = t
	}
	return t
}

func (m *memory) observeAt(uid types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, known := m.trials[uid]; known {
		t.observe = at
		m.trials[uid] = t
	}
}

// clean records that a trial's run object was deleted, and reports whether that
// was recorded before.
func (m *memory) clean(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.cleaned[uid]
	if m.cleaned == nil {
		m.cleaned = map[types.UID]bool{}
	}
	m.cleaned[uid] = true
	return before
}

// forget drops what is known of a trial.
func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.trials, uid)
	delete(m.cleaned, uid)
}
