// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// conditionOf is the condition that puts a trial into a state.
var conditionOf = map[state]v1beta1.ConditionType{
	running: v1beta1.ConditionRunning, succeeded: v1beta1.ConditionSucceeded, failed: v1beta1.ConditionFailed,
	killed: v1beta1.ConditionKilled, earlyStopped: v1beta1.ConditionEarlyStopped,
	metricsUnavailable: v1beta1.ConditionMetricsUnavailable,
}

// trialIn is trial i of experiment "e" in a state, with a loss if that is not
// empty.
func trialIn(i int, s state, loss string) *v1beta1.Trial {
	t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("e-%08d", i), UID: types.UID(strconv.Itoa(i)),
		Annotations:     map[string]string{v1beta1.AnnotationTrialIndex: strconv.Itoa(i)},
		OwnerReferences: []metav1.OwnerReference{{Kind: v1beta1.ExperimentKind, Name: "e", UID: "e", Controller: new(true)}},
	}}
	t.Spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"}
	if c, ok := conditionOf[s]; ok {
		t.Status.Conditions.Set(metav1.Time{}, c, corev1.ConditionTrue, "", "")
	}
	if loss != "" {
		t.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: loss, Max: loss, Latest: loss}}}
		if _, err := strconv.ParseFloat(loss, 64); err != nil {
			t.Status.Observation.Metrics[0].Min = v1beta1.UnavailableMetricValue
			t.Status.Observation.Metrics[0].Max = v1beta1.UnavailableMetricValue
		}
	}
	return t
}

func TestBest(t *testing.T) {
	t.Parallel()
	goal := 0.2
	for name, c := range map[string]struct {
		reason    string
		kind      v1beta1.ObjectiveType
		trials    []*v1beta1.Trial
		want      int // index, -1 for none
		reachesIt bool
	}{
		"Least":      {"minimise", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(0, succeeded, "0.5"), trialIn(1, succeeded, "0.3"), trialIn(2, succeeded, "0.4")}, 1, false},
		"Greatest":   {"maximise", v1beta1.ObjectiveTypeMaximize, []*v1beta1.Trial{trialIn(0, succeeded, "0.1"), trialIn(1, succeeded, "0.3")}, 1, true},
		"Tie":        {"the earlier of equals", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(3, succeeded, "0.3"), trialIn(1, succeeded, "0.30"), trialIn(2, succeeded, "0.3")}, 1, false},
		"Goal":       {"a goal that is met exactly is reached", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(0, succeeded, "0.2")}, 0, true},
		"Running":    {"what a running trial shows so far does not count", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(0, running, "0.1"), trialIn(1, succeeded, "0.3")}, 1, false},
		"Failed":     {"nor what a failed one left", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(0, failed, "0.1")}, -1, false},
		"Stopped":    {"an early stopped one counts", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(0, earlyStopped, "0.3")}, 0, false},
		"NotANumber": {"NaN is no score", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(0, succeeded, "NaN"), trialIn(1, succeeded, "7")}, 1, false},
		"Text":       {"of texts the newest", v1beta1.ObjectiveTypeMaximize, []*v1beta1.Trial{trialIn(2, succeeded, "Genotype(b)"), trialIn(1, succeeded, "Genotype(a)")}, 2, false},
		"Huge":       {"what is too great for a number is infinite", v1beta1.ObjectiveTypeMinimize, []*v1beta1.Trial{trialIn(0, succeeded, "1e999"), trialIn(1, succeeded, "7")}, 1, false},
		"None":       {"no trial, no best", v1beta1.ObjectiveTypeMinimize, nil, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoster()
			for _, trial := range c.trials {
				r.put(trial)
			}
			r.with("e", time.Time{}, func(g *group) {
				got := g.tally(&v1beta1.ObjectiveSpec{Type: c.kind, Goal: &goal})
				best := -1
				if got.best != nil {
					best = indexOf(got.best)
				}
				if best != c.want || got.goal != c.reachesIt {
					t.Errorf("%s: best is trial %d, goal reached %v; want %d, %v", c.reason, best, got.goal, c.want, c.reachesIt)
				}
			})
		})
	}
}

// TestRosterEqualsRecount holds the roster against a plain map.
func TestRosterEqualsRecount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, model := newRoster(), map[int]*v1beta1.Trial{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				s := state(rapid.IntRange(0, int(states)-1).Draw(t, "state"))
				trial := trialIn(rapid.IntRange(0, 20).Draw(t, "index"), s, rapid.SampledFrom([]string{"", "1", "2", "text"}).Draw(t, "loss"))
				r.put(trial)
				model[indexOf(trial)] = trial
			},
			"drop": func(t *rapid.T) {
				i := rapid.IntRange(0, 20).Draw(t, "index")
				if got, want := r.drop(trialIn(i, pending, "")), model[i] != nil; got != want {
					t.Fatalf("drop(%d) = %v, want %v", i, got, want)
				}
				delete(model, i)
			},
			"": func(t *rapid.T) {
				var want [states]int
				var names [states][]string
				for i := range 21 {
					if trial := model[i]; trial != nil {
						s := stateOf(trial.Status.Conditions)
						want[s]++
						names[s] = append(names[s], trial.Name)
					}
				}
				r.with("e", time.Time{}, func(g *group) {
					got := g.tally(&v1beta1.ObjectiveSpec{})
					if got.counts != want || got.total() != len(model) {
						t.Fatalf("counts %v, want %v", got.counts, want)
					}
					for _, keep := range []int{100, 2} {
						for s := range names {
							names[s] = names[s][max(0, len(names[s])-keep):]
						}
						if diff := cmp.Diff(names, g.lists(keep)); diff != "" {
							t.Fatalf("lists(%d): -want, +got:\n%s", keep, diff)
						}
					}
				})
			},
		})
	})
}

// TestStoppedTrialIsAwaited has a trial that Katib's collector calls early
// stopped hold its place until its run has ended.
func TestStoppedTrialIsAwaited(t *testing.T) {
	t.Parallel()
	r := newRoster()
	awaits := func() (n int) {
		r.with("e", time.Time{}, func(g *group) { n = g.tally(&v1beta1.ObjectiveSpec{}).awaits })
		return n
	}
	trial := trialIn(0, earlyStopped, "1")
	r.put(trial)
	if n := awaits(); n != 1 {
		t.Errorf("%d trials are awaited, want 1", n)
	}
	ended := trial.DeepCopy()
	ended.Status.CompletionTime = &metav1.Time{}
	if changed := r.put(ended); !changed || awaits() != 0 {
		t.Errorf("changed %v, %d trials are awaited; want a change to none", changed, awaits())
	}
}

func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRoster()
	for i := range 10 {
		r.put(trialIn(i, succeeded, ""))
	}
	r.with("e", time.Time{}, func(g *group) {
		got := g.lists(3)
		want := []string{"e-00000007", "e-00000008", "e-00000009"}
		if diff := cmp.Diff(want, got[succeeded]); diff != "" {
			t.Errorf("lists(3): -want, +got:\n%s", diff)
		}
	})
}

func TestExpectedTrials(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := newRoster()
	has := func(at time.Time) (known bool) {
		r.with("e", at, func(g *group) { known = g.has("e-00000001") })
		return known
	}
	r.expect("e", "e-00000001", 1, now.Add(time.Second))
	if !has(now) {
		t.Error("a trial that was just created is unknown")
	}
	if has(now.Add(2 * time.Second)) {
		t.Error("a trial that never came is believed in for ever")
	}
	r.put(trialIn(1, running, ""))
	r.expect("e", "e-00000001", 1, now.Add(time.Second))
	if !has(now.Add(2 * time.Second)) {
		t.Error("an expectation replaced a trial that is there")
	}
}
