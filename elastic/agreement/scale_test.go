// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"testing"
	"time"
)

// TestManyMembers has a hundred members start at once and ten of them die at once.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	s := simulate(t, 30)
	ids := group(t, s, 100)
	for _, id := range ids[:10] {
		delete(s.nodes, id)
	}
	s.mustAgree(10*time.Second, "ten of a hundred die", ids[10:]...)
	if number := s.nodes[ids[50]].View().Number; number > 4 {
		t.Errorf("it took %d views, want a few", number)
	}
}
