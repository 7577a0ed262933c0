// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"testing"
)

func TestAllowed(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	if err := Allowed(); err != nil {
		t.Errorf("containers run here, but it says: %v", err)
	}
	if err := r.Overlay(); err != nil {
		t.Errorf("this machine's temporary directory carries no overlays: %v", err)
	}
	if left, err := os.ReadDir(r.cfg.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
