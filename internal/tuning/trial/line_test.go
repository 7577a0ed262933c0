// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestLine(t *testing.T) {
	t.Parallel()
	name := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	var l line
	wantFirst := func(reason, namespace, want string) {
		t.Helper()
		if got, ok := l.first(namespace); got.Name != want || ok != (want != "") {
			t.Errorf("%s: %q is first, want %q", reason, got.Name, want)
		}
	}
	wantFirst("nobody has come", "n", "")
	for _, join := range []types.NamespacedName{name("n", "a"), name("n", "b"), name("m", "c"), name("n", "a")} {
		l.join(join)
	}
	wantFirst("who asks again keeps the place", "n", "a")
	wantFirst("each namespace has a line", "m", "c")
	if l.leave(name("n", "other")) || !l.leave(name("n", "a")) || l.leave(name("n", "a")) {
		t.Error("who leaves was there once")
	}
	wantFirst("the next", "n", "b")
	if !l.leave(name("n", "b")) || len(l.waiting) != 1 {
		t.Errorf("an empty line stays: %v", l.waiting)
	}
}
