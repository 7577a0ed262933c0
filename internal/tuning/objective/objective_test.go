// SPDX-License-Identifier: Apache-2.0

package objective_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/objective"
)

func TestOf(t *testing.T) {
	t.Parallel()
	metric := func(min, max, latest string) *v1beta1.Observation {
		return &v1beta1.Observation{Metrics: []v1beta1.Metric{
			{Name: "other", Min: "-9", Max: "9", Latest: "9"},
			{Name: "loss", Min: min, Max: max, Latest: latest},
		}}
	}
	number := func(v float64) objective.Score { return objective.Score{Kind: objective.Number, Value: v} }
	for name, c := range map[string]struct {
		reason      string
		kind        v1beta1.ObjectiveType
		strategy    v1beta1.MetricStrategyType
		observation *v1beta1.Observation
		want        objective.Score
	}{
		"Min":         {"by strategy", v1beta1.ObjectiveTypeMaximize, v1beta1.ExtractByMin, metric("1", "3", "2"), number(1)},
		"Max":         {"by strategy", v1beta1.ObjectiveTypeMinimize, v1beta1.ExtractByMax, metric("1", "3", "2"), number(3)},
		"Latest":      {"by strategy", v1beta1.ObjectiveTypeMinimize, v1beta1.ExtractByLatest, metric("1", "3", "2"), number(2)},
		"MinDefault":  {"without one, the least when minimising", v1beta1.ObjectiveTypeMinimize, "", metric("1", "3", "2"), number(1)},
		"MaxDefault":  {"and the greatest when maximising", v1beta1.ObjectiveTypeMaximize, "", metric("1", "3", "2"), number(3)},
		"Text":        {"no number: the latest, as text", v1beta1.ObjectiveTypeMaximize, "", metric("unavailable", "unavailable", "Genotype(a)"), objective.Score{Kind: objective.Text}},
		"Unavailable": {"reported, but without a value", v1beta1.ObjectiveTypeMaximize, "", metric("unavailable", "unavailable", "unavailable"), objective.Score{}},
		"NaN":         {"not a number", v1beta1.ObjectiveTypeMaximize, v1beta1.ExtractByLatest, metric("1", "1", "NaN"), objective.Score{}},
		"Infinite":    {"it would be the best for ever", v1beta1.ObjectiveTypeMaximize, "", metric("1", "inf", "1"), objective.Score{}},
		"TooGreat":    {"nor a number out of range", v1beta1.ObjectiveTypeMaximize, "", metric("1", "1e999", "1"), objective.Score{}},
		"Nothing":     {"no observation", v1beta1.ObjectiveTypeMaximize, "", nil, objective.Score{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trial := &v1beta1.Trial{}
			trial.Spec.Objective = &v1beta1.ObjectiveSpec{Type: c.kind, ObjectiveMetricName: "loss"}
			if c.strategy != "" {
				trial.Spec.Objective.MetricStrategies = []v1beta1.MetricStrategy{{Name: "other", Value: v1beta1.ExtractByMax}, {Name: "loss", Value: c.strategy}}
			}
			trial.Status.Observation = c.observation
			if got := objective.Of(trial); got != c.want {
				t.Errorf("%s: Of() = %+v, want %+v", c.reason, got, c.want)
			}
		})
	}
	if got := objective.Of(&v1beta1.Trial{}); got != (objective.Score{}) {
		t.Errorf("Of() a trial without objective = %+v", got)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	one, two := objective.Score{Kind: objective.Number, Value: 1}, objective.Score{Kind: objective.Number, Value: 2}
	text := objective.Score{Kind: objective.Text}
	for _, c := range []struct {
		a, b   objective.Score
		goal   v1beta1.ObjectiveType
		want   bool
		reason string
	}{
		{one, two, v1beta1.ObjectiveTypeMinimize, true, "less"},
		{one, two, v1beta1.ObjectiveTypeMaximize, false, "less, but more is wanted"},
		{two, one, v1beta1.ObjectiveTypeMaximize, true, "more"},
		{one, one, v1beta1.ObjectiveTypeMaximize, false, "equal"},
		{one, text, v1beta1.ObjectiveTypeMinimize, true, "a number beats a text"},
		{text, objective.Score{}, v1beta1.ObjectiveTypeMinimize, true, "a text beats nothing"},
		{text, text, v1beta1.ObjectiveTypeMinimize, false, "texts have no order"},
	} {
		if got := c.a.Better(c.b, c.goal); got != c.want {
			t.Errorf("%s: %+v.Better(%+v) = %v", c.reason, c.a, c.b, got)
		}
	}
	for _, c := range []struct {
		score  objective.Score
		kind   v1beta1.ObjectiveType
		goal   *float64
		want   bool
		reason string
	}{
		{one, v1beta1.ObjectiveTypeMinimize, ptr.To(1.0), true, "exactly"},
		{two, v1beta1.ObjectiveTypeMinimize, ptr.To(1.0), false, "not yet"},
		{two, v1beta1.ObjectiveTypeMaximize, ptr.To(1.0), true, "beyond"},
		{one, v1beta1.ObjectiveTypeMinimize, nil, false, "no goal"},
		{text, v1beta1.ObjectiveTypeMinimize, ptr.To(1.0), false, "text reaches nothing"},
	} {
		if got := c.score.Reaches(&v1beta1.ObjectiveSpec{Type: c.kind, Goal: c.goal}); got != c.want {
			t.Errorf("%s: %+v.Reaches(%v) = %v", c.reason, c.score, c.goal, got)
		}
	}
}
