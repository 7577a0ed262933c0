// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func at(second int) metav1.Time { return metav1.NewTime(time.Unix(int64(second), 0).UTC()) }

func TestConditionsOfAnExperimentThatIsResumed(t *testing.T) {
	t.Parallel()
	var cs Conditions
	cs.Set(at(1), ConditionCreated, corev1.ConditionTrue, ReasonExperimentCreated, "Experiment is created")
	cs.Set(at(2), ConditionRunning, corev1.ConditionTrue, ReasonExperimentRunning, "Experiment is running")
	if cs.Set(at(3), ConditionRunning, corev1.ConditionTrue, ReasonExperimentRunning, "still running") {
		t.Error("the same status and reason count as a change")
	}
	cs.Complete(at(4), ConditionSucceeded, ReasonExperimentMaxTrialsReached, "done")
	want := Conditions{
		{ConditionCreated, corev1.ConditionTrue, ReasonExperimentCreated, "Experiment is created", at(1), at(1)},
		{ConditionRunning, corev1.ConditionFalse, ReasonExperimentRunning, "Experiment is running", at(4), at(4)},
		{ConditionSucceeded, corev1.ConditionTrue, ReasonExperimentMaxTrialsReached, "done", at(4), at(4)},
	}
	if diff := cmp.Diff(want, cs); diff != "" {
		t.Errorf("after it succeeded (-want +got):\n%s", diff)
	}

	cs.Remove(ConditionSucceeded)
	cs.Set(at(5), ConditionRestarting, corev1.ConditionTrue, ReasonExperimentRestarting, "again")
	cs.Set(at(6), ConditionRunning, corev1.ConditionTrue, ReasonExperimentRunning, "Experiment is running")
	if cs.Last() != ConditionRunning || cs.IsTrue(ConditionSucceeded) || !cs.IsTrue(ConditionRestarting) {
		t.Errorf("after it was resumed: %+v", cs)
	}
	cs.Set(at(7), ConditionRunning, corev1.ConditionTrue, "OtherReason", "")
	if c := cs.Get(ConditionRunning); c.LastTransitionTime != at(6) || c.LastUpdateTime != at(7) {
		t.Errorf("a new reason alone must move only the update's time: %+v", c)
	}
}

// TestConditionsHoldEachTypeOnce writes conditions at random and holds what
// clients rely on: each type is there once, and the last change is last.
func TestConditionsHoldEachTypeOnce(t *testing.T) {
	t.Parallel()
	types := []ConditionType{ConditionCreated, ConditionRunning, ConditionSucceeded, ConditionFailed}
	rapid.Check(t, func(t *rapid.T) {
		var cs Conditions
		for second := range rapid.IntRange(1, 20).Draw(t, "writes") {
			c := rapid.SampledFrom(types).Draw(t, "type")
			status := rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "status")
			if cs.Set(at(second), c, status, rapid.SampledFrom([]string{"A", "B"}).Draw(t, "reason"), "") && cs.Last() != c {
				t.Fatalf("%s changed last, but %s is last", c, cs.Last())
			}
			seen := map[ConditionType]bool{}
			for _, have := range cs {
				if seen[have.Type] {
					t.Fatalf("%s is there twice", have.Type)
				}
				seen[have.Type] = true
			}
		}
	})
}

func TestTrialIsCompleted(t *testing.T) {
	t.Parallel()
	for c, want := range map[ConditionType]bool{
		ConditionCreated: false, ConditionRunning: false, ConditionSucceeded: true, ConditionFailed: true,
		ConditionKilled: true, ConditionEarlyStopped: true, ConditionMetricsUnavailable: true,
	} {
		var trial Trial
		trial.Status.Conditions.Set(at(1), c, corev1.ConditionTrue, "R", "")
		if trial.IsCompleted() != want {
			t.Errorf("with %s IsCompleted is %v", c, !want)
		}
	}
}

func TestTrialHasObjective(t *testing.T) {
	t.Parallel()
	trial := Trial{Spec: TrialSpec{Objective: &ObjectiveSpec{ObjectiveMetricName: "loss"}}}
	for _, c := range []struct {
		reason      string
		observation *Observation
		want        bool
	}{
		{"no observation", nil, false},
		{"another metric", &Observation{Metrics: []Metric{{Name: "acc", Latest: "1"}}}, false},
		{"unavailable", &Observation{Metrics: []Metric{{Name: "loss", Latest: UnavailableMetricValue}}}, false},
		{"a value", &Observation{Metrics: []Metric{{Name: "loss", Latest: "0.1"}}}, true},
	} {
		trial.Status.Observation = c.observation
		if got := trial.HasObjective(); got != c.want {
			t.Errorf("%s: HasObjective is %v", c.reason, got)
		}
	}
}
