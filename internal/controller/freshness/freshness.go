// SPDX-License-Identifier: Apache-2.0

// Package freshness tells a reconciler that its cache has not yet seen what the
// reconciler itself wrote.
//
// A reconciler reads a cache that follows the API server by a watch. Just after
// a write it may be called again, for another reason, while the cache still
// holds the object as it was before. What it decides then is what it decided
// already: harmless, since the write would be refused as a conflict, but not
// free. A [Tracker] remembers the resourceVersion that each write replaced; an
// object that still has it is stale, and the reconciler can return at once,
// because the watch event of its own write will call it again.
//
// A write replaces exactly the version that it named, so that no other version
// can hide between the two, and the rule needs no timer.
package freshness

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tracker remembers the last write to each object. The zero Tracker is ready
// for use, by several goroutines at once.
type Tracker struct {
	mu       sync.Mutex
	replaced map[types.UID]string
}

// Wrote records that a write replaced the version before of an object, and
// that after is what the server answered.
func (t *Tracker) Wrote(before string, after client.Object) {
	if before == after.GetResourceVersion() {
		return // nothing changed: no event will come
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.replaced == nil {
		t.replaced = map[types.UID]string{}
	}
	t.replaced[after.GetUID()] = before
}

// Stale reports whether obj, read from the cache, is older than what this
// process wrote. Once it is not, the object is forgotten.
func (t *Tracker) Stale(obj client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, ok := t.replaced[obj.GetUID()]
	if !ok {
		return false
	}
	if before == obj.GetResourceVersion() {
		return true
	}
	delete(t.replaced, obj.GetUID())
	return false
}

// Forget drops what is known about a deleted object.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.replaced, uid)
}
