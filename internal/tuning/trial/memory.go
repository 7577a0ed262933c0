// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// memory is the unstored state of trials. Losing it delays a status by
// moments, or repeats a deletion.
type memory struct {
	mu     sync.Mutex
	trials map[types.UID]times
	// cleaned holds the trials whose run object was deleted, until the cache
	// shows it.
	cleaned map[types.UID]bool
	// awaited are the trials by name whose reports are worth a look at once.
	awaited map[observation.Trial]types.UID
}

// times are the times of one trial.
type times struct {
	since   time.Time // when it was first seen
	observe time.Time // when its status is next updated with its metrics
	look    time.Time // when it may be looked at again whether to stop it early
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

// lookAt records when a trial may be looked at again, and that its reports are
// awaited.
func (m *memory) lookAt(t *v1beta1.Trial, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.trials[t.UID]; ok {
		known.look = at
		m.trials[t.UID] = known
	}
	if m.awaited == nil {
		m.awaited = map[observation.Trial]types.UID{}
	}
	m.awaited[observation.Trial{Namespace: t.Namespace, Name: t.Name}] = t.UID
}

// awaits reports whether a trial's reports are awaited.
func (m *memory) awaits(t observation.Trial) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.awaited[t]
	return ok
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

// forget drops the state of a trial.
func (m *memory) forget(t *v1beta1.Trial) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.trials, t.UID)
	delete(m.cleaned, t.UID)
	if name := (observation.Trial{Namespace: t.Namespace, Name: t.Name}); m.awaited[name] == t.UID {
		delete(m.awaited, name)
	}
}
