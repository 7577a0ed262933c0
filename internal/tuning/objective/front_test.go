// SPDX-License-Identifier: Apache-2.0

package objective_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/objective"
)

// several is an objective that is to be small, another that is to be great, and
// a bound on a third metric.
var several = &v1beta1.ObjectiveSpec{
	Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss",
	AdditionalObjectives: []v1beta1.AdditionalObjective{{Type: v1beta1.ObjectiveTypeMaximize, MetricName: "speed"}},
	Constraints:          []v1beta1.MetricConstraint{{MetricName: "memory", Min: ptr.To(1.0), Max: ptr.To(4.0)}},
}

// trialWith is a trial that reported some metrics, each once.
func trialWith(name string, metrics map[string]float64) *v1beta1.Trial {
	t := &v1beta1.Trial{Spec: v1beta1.TrialSpec{Objective: several}, Status: v1beta1.TrialStatus{Observation: &v1beta1.Observation{}}}
	t.Name = name
	for metric, value := range metrics {
		text := strconv.FormatFloat(value, 'g', -1, 64)
		t.Status.Observation.Metrics = append(t.Status.Observation.Metrics, v1beta1.Metric{Name: metric, Min: text, Max: text, Latest: text})
	}
	return t
}

func TestViolations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason  string
		metrics map[string]float64
		want    objective.Score
	}{
		{"within the bounds", map[string]float64{"loss": 1, "memory": 4}, objective.Score{Kind: objective.Number, Value: 1}},
		{"above", map[string]float64{"loss": 1, "memory": 6}, objective.Score{Kind: objective.Number, Value: 1, Violation: 2}},
		{"below", map[string]float64{"loss": 1, "memory": 0.5}, objective.Score{Kind: objective.Number, Value: 1, Violation: 0.5}},
		{"not known", map[string]float64{"loss": 1}, objective.Score{Kind: objective.Number, Value: 1, Violation: math.Inf(1)}},
		{"without a value it is none", map[string]float64{"memory": 2}, objective.Score{}},
	} {
		if got := objective.Of(trialWith("t", c.metrics)); got != c.want {
			t.Errorf("%s: Of() = %+v, want %+v", c.reason, got, c.want)
		}
	}
	good, bad := objective.Score{Kind: objective.Number, Value: 9}, objective.Score{Kind: objective.Number, Value: 1, Violation: 0.1}
	if !good.Better(bad, v1beta1.ObjectiveTypeMinimize) || bad.Better(good, v1beta1.ObjectiveTypeMinimize) {
		t.Error("a trial that violates a constraint is better than one that does not")
	}
	if bad.Reaches(&v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, Goal: ptr.To(2.0)}) {
		t.Error("a trial that violates a constraint reaches the goal")
	}
}

// TestFront compares the front with its definition.
func TestFront(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.Float64Range(0, 3)
		if rapid.Bool().Draw(rt, "coarse") {
			value = rapid.Map(rapid.IntRange(0, 3), func(i int) float64 { return float64(i) })
		}
		var trials []*v1beta1.Trial
		var rows [][2]float64 // loss and speed of those within the bounds
		var names []string
		for i := range rapid.IntRange(0, 12).Draw(rt, "trials") {
			m := map[string]float64{"loss": value.Draw(rt, "loss"), "memory": rapid.SampledFrom([]float64{2, 2, 5}).Draw(rt, "memory")}
			if rapid.IntRange(0, 5).Draw(rt, "known") > 0 {
				m["speed"] = value.Draw(rt, "speed")
			}
			name := fmt.Sprintf("t%02d", i)
			trials = append(trials, trialWith(name, m))
			if speed, known := m["speed"]; known && m["memory"] == 2 {
				rows, names = append(rows, [2]float64{m["loss"], speed}), append(names, name)
			}
		}
		want := map[string]bool{}
		for i, a := range rows {
			dominated := false
			for j, b := range rows {
				noWorse := b[0] <= a[0] && b[1] >= a[1]
				dominated = dominated || noWorse && (a != b || j < i)
			}
			if !dominated {
				want[names[i]] = true
			}
		}
		got, last := map[string]bool{}, math.Inf(-1)
		for _, trial := range objective.Front(several, trials) {
			got[trial.Name] = true
			values, _ := objective.Values(trial)
			if values[0] < last {
				rt.Errorf("the best by the first objective does not come first")
			}
			last = values[0]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("front: -want, +got:\n%s", diff)
		}
	})
}
