// SPDX-License-Identifier: Apache-2.0

package rootless

import "testing"

func TestParseSingle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, text string
		outside      int
		ok           bool
	}{
		{"a user's namespace", "         0       1000          1\n", 1000, true},
		{"the machine", "         0          0 4294967295\n", 0, false},
		{"a container with users of its own", "0 1000 1\n1 100000 65536\n", 1000, false},
		{"a user without root", "1000 1000 1\n", 1000, false},
		{"a namespace without a map", "", 0, false},
	} {
		if outside, ok := parseSingle(tt.text); ok != tt.ok || ok && outside != tt.outside {
			t.Errorf("%s: got %d, %v, want %d, %v", tt.reason, outside, ok, tt.outside, tt.ok)
		}
	}
}
