// SPDX-License-Identifier: Apache-2.0

package halving

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlan compares with Table 1 of the Hyperband paper: 81 units of the
// resource and eta 3.
func TestPlan(t *testing.T) {
	t.Parallel()
	want := [][]int{
		{81, 27, 9, 3, 1},
		{0, 34, 11, 3, 1},
		{0, 0, 15, 5, 1},
		{0, 0, 0, 8, 2},
		{0, 0, 0, 0, 5},
		{81, 27, 9, 3, 1}, // and again
	}
	for bracket, plan := range want {
		if diff := cmp.Diff(plan, Plan(5, bracket, 3)); diff != "" {
			t.Errorf("bracket %d: -want, +got:\n%s", bracket, diff)
		}
	}
}
