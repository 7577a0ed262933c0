// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

func begin() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func external(seconds int32) *v1beta1.Trial {
	t := &v1beta1.Trial{}
	t.Spec.External = &v1beta1.ExternalTrials{LeaseSeconds: ptr.To(seconds)}
	return t
}

func TestFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		change func(*v1beta1.Trial)
		want   bool
	}{
		"New":      {"nobody has had it", func(*v1beta1.Trial) {}, true},
		"Job":      {"Kubernetes runs it", func(t *v1beta1.Trial) { t.Spec.External = nil }, false},
		"Taken":    {"a program has it", func(t *v1beta1.Trial) { Acquire(t, "a", "", begin()) }, false},
		"Expired":  {"only the controller takes it back", func(t *v1beta1.Trial) { Acquire(t, "a", "", begin().Add(-time.Hour)) }, false},
		"Released": {"it has", func(t *v1beta1.Trial) { Acquire(t, "a", "", begin()); Release(t) }, true},
		"Stopping": {"it is not worth going on", func(t *v1beta1.Trial) { t.Status.Stop(metav1.NewTime(begin()), 1, "bad") }, false},
		"Ended": {"it has failed", func(t *v1beta1.Trial) {
			t.Status.Conditions.Set(metav1.NewTime(begin()), "Failed", corev1.ConditionTrue, "", "")
		}, false},
		"Deleted": {"it goes", func(t *v1beta1.Trial) { t.DeletionTimestamp = ptr.To(metav1.NewTime(begin())) }, false},
	} {
		trial := external(60)
		c.change(trial)
		if got := Free(trial); got != c.want {
			t.Errorf("%s: Free() = %v, want %v: %s", name, got, c.want, c.reason)
		}
	}
}

// TestRenewIsSeldomWritten checks that reports in quick succession cost no write
// each, and that a lease that is kept never runs out.
func TestRenewIsSeldomWritten(t *testing.T) {
	t.Parallel()
	trial, now, writes := external(9), begin(), 0
	Acquire(trial, "a", "w", now)
	for range 900 {
		now = now.Add(100 * time.Millisecond)
		if !Held(trial, "a", now) {
			t.Fatalf("the lease ran out %s after a report", now.Sub(begin()))
		}
		if Renew(trial, now) {
			writes++
		}
	}
	if writes != 30 {
		t.Errorf("%d writes in ten terms, want 30: one in a third of a term", writes)
	}
}

// TestOneAtATime has programs that crash, stall and read stale versions, and a
// controller, work on one trial, each write on condition that the version is the
// one that was read. At any time at most one program may report, one outcome is
// recorded, and nothing is reported after the lease was released.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		stored, version, now := external(rapid.Int32Range(1, 20).Draw(rt, "term")), 0, begin()
		setBack := rapid.Bool().Draw(rt, "the clock is set back now and then")
		read := map[int]*v1beta1.Trial{} // what each program last read, and in which version
		at := map[int]int{}
		ids, outcomes, attempts := map[int]string{}, 0, int32(0)
		write := func(from *v1beta1.Trial, fromVersion int) bool {
			if fromVersion != version {
				return false
			}
			stored, version = from.DeepCopy(), version+1
			return true
		}
		program := rapid.IntRange(0, 2)
		rt.Repeat(map[string]func(*rapid.T){
			"read": func(rt *rapid.T) { p := program.Draw(rt, "p"); read[p], at[p] = stored.DeepCopy(), version },
			"ask": func(rt *rapid.T) {
				p := program.Draw(rt, "p")
				if c := read[p]; c != nil && Free(c) {
					id := fmt.Sprint(p, "/", version)
					Acquire(c, id, "w", now)
					if write(c, at[p]) {
						ids[p] = id
						attempts++
						if stored.Status.Lease.Attempt != attempts {
							rt.Fatalf("attempt %d is counted as %d", attempts, stored.Status.Lease.Attempt)
						}
					}
					delete(read, p)
				}
			},
			"renew": func(rt *rapid.T) {
				p := program.Draw(rt, "p")
				if c := read[p]; c != nil && Held(c, ids[p], now) && Renew(c, now) {
					write(c, at[p])
					delete(read, p)
				}
			},
			"finish": func(rt *rapid.T) {
				p := program.Draw(rt, "p")
				if c := read[p]; c != nil && Held(c, ids[p], now) {
					Finish(c, v1beta1.LeaseSucceeded, "")
					if write(c, at[p]) {
						outcomes++
					}
					delete(read, p)
				}
			},
			"time": func(rt *rapid.T) {
				least := 1
				if setBack {
					least = -9000
				}
				now = now.Add(time.Duration(rapid.IntRange(least, 9000).Draw(rt, "ms")) * time.Millisecond)
			},
			"release": func(*rapid.T) { // what the controller does
				if l := stored.Status.Lease; l != nil && l.ID != "" && l.Outcome == "" && Overdue(stored, now) <= 0 {
					if Held(stored, l.ID, now) {
						rt.Fatal("a lease that may be used is released")
					}
					c := stored.DeepCopy()
					Release(c)
					write(c, version)
				}
			},
			"": func(rt *rapid.T) {
				holders := 0
				for _, id := range ids {
					if Held(stored, id, now) {
						holders++
					}
				}
				if holders > 1 || outcomes > 1 {
					rt.Fatalf("%d programs hold the trial, %d outcomes: %+v", holders, outcomes, stored.Status.Lease)
				}
				for p, c := range read {
					if setBack {
						break // what it read bears times that are to come
					}
					if at[p] != version && Held(c, ids[p], now) && !Is(stored, ids[p]) {
						rt.Fatalf("program %d may report by what it read, though the lease is gone", p)
					}
				}
			},
		})
	})
}
