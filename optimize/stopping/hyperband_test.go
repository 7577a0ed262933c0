// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHyperbandShares compares with Table 1 of the Hyperband paper: 81
// configurations start in the bracket with all rungs, and 5 in that without.
func TestHyperbandShares(t *testing.T) {
	t.Parallel()
	shares := hyperband{DefaultHyperbandConfig()}.shares(81)
	if diff := cmp.Diff([]int{81, 34, 15, 8, 5}, shares); diff != "" {
		t.Errorf("shares: -want, +got:\n%s", diff)
	}
	counts := make([]int, len(shares))
	for trial := range 143 {
		counts[bracketOf(trial, shares)]++
	}
	if diff := cmp.Diff(shares, counts); diff != "" {
		t.Errorf("trials of one round: -want, +got:\n%s", diff)
	}
}
