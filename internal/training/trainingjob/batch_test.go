// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestBatches holds that each is done once if none fails, that no more than
// atOnce are done together, and that a failure lets no more begin than those of
// its batch.
func TestBatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "n")
		bad := rapid.IntRange(-1, n).Draw(t, "bad")
		var all []int
		for i := range n {
			all = append(all, i)
		}
		var mu sync.Mutex
		done, together, most := map[int]int{}, 0, 0
		err := batches(all, func(i int) error {
			mu.Lock()
			done[i]++
			together++
			most = max(most, together)
			mu.Unlock()
			defer func() {
				mu.Lock()
				together--
				mu.Unlock()
			}()
			if i == bad {
				return errors.New("bad")
			}
			return nil
		})
		if bad >= 0 && bad < n {
			if err == nil || len(done) > 2*bad+1 || len(done) > bad+atOnce {
				t.Fatalf("%d of %d are begun though %d fails: %v", len(done), n, bad, err)
			}
		} else if err != nil || len(done) != n {
			t.Fatalf("%d of %d are done: %v", len(done), n, err)
		}
		for i, times := range done {
			if times != 1 {
				t.Fatalf("%d is done %d times", i, times)
			}
		}
		if most > atOnce {
			t.Fatalf("%d are done at once", most)
		}
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	job := types.NamespacedName{Name: "j"}
	cases := []struct {
		reason     string
		took, wait time.Duration
	}{
		{"a job that no one has looked at", -1, 0},
		{"a quick look needs no rest", time.Millisecond, 0},
		{"a look at a large job", 20 * time.Millisecond, 80 * time.Millisecond},
		{"a look that was held up", time.Minute, longestRest},
		{"it is quick again", 0, 0},
	}
	for _, tc := range cases {
		if tc.took >= 0 {
			p.took(job, tc.took, noon)
		}
		if got := p.wait(job, noon); got != tc.wait {
			t.Errorf("%s: wait %v, want %v", tc.reason, got, tc.wait)
		}
		if got := p.wait(job, noon.Add(tc.wait)); got != 0 {
			t.Errorf("%s: after its rest it waits %v", tc.reason, got)
		}
	}
	p.took(job, time.Second, noon)
	p.forget(job)
	if len(p.next) > 0 {
		t.Error("a job that is gone is kept in mind")
	}
}
