// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize/internal/random"
)

// TestTimeline checks that results that come late leave the search as it is when
// all come in their order.
func TestTimeline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		numbers := random.New(1, 0)
		points := make([][]float64, rapid.IntRange(1, 400).Draw(rt, "results"))
		for i := range points {
			points[i] = []float64{numbers.Float(), numbers.Float(), numbers.Float()}
		}
		tell := func(l *Timeline, i int) { l.Tell(i, points[i], points[i][0]+points[i][1], 0) }
		straight, late := NewTimeline(config(3, 1)), NewTimeline(config(3, 1))
		for i := range points {
			tell(straight, i)
			tell(late, i)
			if rapid.IntRange(0, 30).Draw(rt, "late") > 0 {
				continue
			}
			late.Rewind(rapid.IntRange(0, i).Draw(rt, "index"))
			for k := late.Last + 1; k <= i; k++ {
				tell(late, k)
			}
		}
		one, _ := straight.Search.Candidate(0)
		other, _ := late.Search.Candidate(0)
		if diff := cmp.Diff(one, other); diff != "" || straight.Last != late.Last {
			rt.Errorf("next candidate after %d results, and after %d:\n%s", straight.Last, late.Last, diff)
		}
	})
}
