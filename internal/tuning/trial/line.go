// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// line is the queue of trials that wait for their namespace's quota, first come,
// first served. Losing it only costs moments: each trial also polls.
type line struct {
	mu      sync.Mutex
	waiting map[string][]types.NamespacedName
}

// join has a trial wait, at the end of the line if it is new.
func (l *line) join(t types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[string][]types.NamespacedName{}
	}
	if !slices.Contains(l.waiting[t.Namespace], t) {
		l.waiting[t.Namespace] = append(l.waiting[t.Namespace], t)
	}
}

// leave takes a trial out of the line and reports whether it was there.
func (l *line) leave(t types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.waiting[t.Namespace], t)
	if at < 0 {
		return false
	}
	if l.waiting[t.Namespace] = slices.Delete(l.waiting[t.Namespace], at, at+1); len(l.waiting[t.Namespace]) == 0 {
		delete(l.waiting, t.Namespace)
	}
	return true
}

// first is the trial that has waited longest in a namespace, which stays where
// it is until it leaves.
func (l *line) first(namespace string) (types.NamespacedName, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting[namespace]) == 0 {
		return types.NamespacedName{}, false
	}
	return l.waiting[namespace][0], true
}
