// SPDX-License-Identifier: Apache-2.0

package reconciling_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/internal/platform/reconciling"
)

func object(uid, version string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.UID, o.ResourceVersion = types.UID(uid), version
	return o
}

func TestTracker(t *testing.T) {
	t.Parallel()
	var tracker reconciling.WriteTracker
	check := func(reason, uid, version string, want bool) {
		t.Helper()
		if got := tracker.Stale(object(uid, version)); got != want {
			t.Errorf("%s: Stale(%s at %s) = %v, want %v", reason, uid, version, got, want)
		}
	}
	check("never written", "a", "1", false)
	tracker.Wrote("1", object("a", "2"))
	check("the cache has the version before the write", "a", "1", true)
	check("another object with that version", "b", "1", false)
	check("the cache has the write", "a", "2", false)
	check("once seen, nothing is remembered", "a", "1", false)
	tracker.Wrote("2", object("a", "3"))
	check("the cache is even newer than the write", "a", "4", false)
	tracker.Wrote("4", object("a", "4"))
	check("a write that changed nothing makes nothing stale", "a", "4", false)
	tracker.Wrote("4", object("a", "5"))
	tracker.Forget("a")
	check("forgotten", "a", "4", false)
}
