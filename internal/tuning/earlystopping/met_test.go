// SPDX-License-Identifier: Apache-2.0

package earlystopping_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/observation"
)

var (
	minimize = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"}
	maximize = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMaximize, ObjectiveMetricName: "loss"}
)

// reported are points of pairs of a metric and a value.
func reported(pairs ...string) []observation.Point {
	var points []observation.Point
	for i := 0; i < len(pairs); i += 2 {
		points = append(points, observation.Point{Time: time.Unix(int64(i), 0), Metric: pairs[i], Value: pairs[i+1]})
	}
	return points
}

func losses(values ...string) []observation.Point {
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, "loss", v)
	}
	return reported(pairs...)
}

func TestMet(t *testing.T) {
	t.Parallel()
	type rules = []v1beta1.EarlyStoppingRule
	greater := func(value string, start int) v1beta1.EarlyStoppingRule {
		return v1beta1.EarlyStoppingRule{Name: "loss", Value: value, Comparison: v1beta1.ComparisonTypeGreater, StartStep: start}
	}
	less := func(value string, start int) v1beta1.EarlyStoppingRule {
		return v1beta1.EarlyStoppingRule{Name: "loss", Value: value, Comparison: v1beta1.ComparisonTypeLess, StartStep: start}
	}
	epoch := func(value string) v1beta1.EarlyStoppingRule {
		return v1beta1.EarlyStoppingRule{Name: "epoch", Value: value, Comparison: v1beta1.ComparisonTypeEqual}
	}
	for name, c := range map[string]struct {
		reason    string
		rules     rules
		objective *v1beta1.ObjectiveSpec
		points    []observation.Point
		want      earlystopping.Decision
	}{
		"None":      {"no rule never stops", nil, minimize, losses("9"), earlystopping.Decision{}},
		"Greater":   {"worse at the first step", rules{greater("1", 0)}, minimize, losses("2"), earlystopping.Decision{Step: 1, Why: "the best value of loss at step 1, 2, is greater than 1"}},
		"Equal":     {"greater means strictly", rules{greater("1", 0)}, minimize, losses("1"), earlystopping.Decision{}},
		"StartStep": {"not before startStep values", rules{greater("1", 3)}, minimize, losses("5", "4"), earlystopping.Decision{}},
		"AtStart":   {"with the startStep-th value", rules{greater("1", 3)}, minimize, losses("5", "4", "3", "2"), earlystopping.Decision{Step: 3, Why: "the best value of loss at step 3, 3, is greater than 1"}},
		"Best":      {"the best value so far counts", rules{greater("1", 2)}, minimize, losses("0.5", "4", "9"), earlystopping.Decision{}},
		"Maximize":  {"which is the greatest when maximising", rules{less("1", 2)}, maximize, losses("0.2", "0.5", "9"), earlystopping.Decision{Step: 2, Why: "the best value of loss at step 2, 0.5, is less than 1"}},
		"NaN":       {"what is not a number is the worst", rules{greater("1", 0)}, minimize, losses("NaN"), earlystopping.Decision{Step: 1, Why: "the best value of loss at step 1, +Inf, is greater than 1"}},
		"InfBest":   {"nor is what is infinite", rules{greater("1", 2)}, minimize, losses("-inf", "5"), earlystopping.Decision{Step: 2, Why: "the best value of loss at step 2, 5, is greater than 1"}},
		"NaNBest":   {"and never the best", rules{less("1", 0)}, maximize, losses("5", "nan"), earlystopping.Decision{}},
		"Text":      {"text is no step", rules{greater("1", 2)}, minimize, losses("8", "relu"), earlystopping.Decision{}},
		"Other":     {"of another metric each value counts", rules{epoch("2")}, minimize, reported("epoch", "1", "loss", "3", "epoch", "2", "epoch", "3"), earlystopping.Decision{Step: 1, Why: "the value of epoch at step 2, 2, is 2"}},
		"All":       {"all must come true, each in its time", rules{epoch("1"), greater("1", 0)}, minimize, reported("epoch", "1", "epoch", "2", "loss", "3"), earlystopping.Decision{Step: 1, Why: "the value of epoch at step 1, 1, is 1, and the best value of loss at step 1, 3, is greater than 1"}},
		"NotAll":    {"one is not enough", rules{epoch("7"), greater("1", 0)}, minimize, reported("epoch", "1", "loss", "3"), earlystopping.Decision{}},
		"Malformed": {"a limit that is no number is never passed", rules{greater("much", 0)}, minimize, losses("1e300"), earlystopping.Decision{}},
		"Unknown":   {"nor is an unknown comparison true", rules{{Name: "loss", Value: "1", Comparison: "about"}}, minimize, losses("1"), earlystopping.Decision{}},
		"Huge":      {"a value out of range is infinite", rules{greater("1", 0)}, minimize, losses("1e999"), earlystopping.Decision{Step: 1, Why: "the best value of loss at step 1, +Inf, is greater than 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, earlystopping.Met(c.rules, c.objective, c.points)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestMetStays checks that more reports change no decision, so that it does not
// matter when a trial is looked at.
func TestMetStays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.SampledFrom([]string{"0", "1", "2", "3", "nan", "inf", "text"})
		metric := rapid.SampledFrom([]string{"loss", "epoch"})
		comparison := rapid.SampledFrom([]v1beta1.ComparisonType{"equal", "less", "greater"})
		rules := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) v1beta1.EarlyStoppingRule {
			return v1beta1.EarlyStoppingRule{
				Name: metric.Draw(rt, "metric"), Value: value.Draw(rt, "value"),
				Comparison: comparison.Draw(rt, "comparison"), StartStep: rapid.IntRange(0, 3).Draw(rt, "start"),
			}
		}), 0, 3).Draw(rt, "rules")
		var pairs []string
		var decided earlystopping.Decision
		for range rapid.IntRange(0, 12).Draw(rt, "reports") {
			pairs = append(pairs, metric.Draw(rt, "metric"), value.Draw(rt, "value"))
			d := earlystopping.Met(rules, maximize, reported(pairs...))
			if decided.Stop() && d != decided {
				rt.Fatalf("the decision %v became %v after %v", decided, d, pairs)
			}
			decided = d
		}
	})
}

func ExampleMet() {
	rules := []v1beta1.EarlyStoppingRule{{Name: "accuracy", Value: "0.8", Comparison: v1beta1.ComparisonTypeLess, StartStep: 2}}
	objective := &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMaximize, ObjectiveMetricName: "accuracy"}
	d := earlystopping.Met(rules, objective, reported("accuracy", "0.61", "accuracy", "0.72", "accuracy", "0.74"))
	fmt.Println(d.Why)
	// Output: the best value of accuracy at step 2, 0.72, is less than 0.8
}
