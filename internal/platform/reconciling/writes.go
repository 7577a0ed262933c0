// SPDX-License-Identifier: Apache-2.0

package reconciling

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteTracker remembers the last write to each object. The zero WriteTracker is ready
// for use, by several goroutines at once.
type WriteTracker struct {
	mu       sync.Mutex
	replaced map[types.UID]string
}

// Wrote records that a write replaced the version before of an object with
// after, the server's response.
func (t *WriteTracker) Wrote(before string, after client.Object) {
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
func (t *WriteTracker) Stale(obj client.Object) bool {
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

// Forget drops the state of a deleted object.
func (t *WriteTracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.replaced, uid)
}
