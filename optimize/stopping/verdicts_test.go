// SPDX-License-Identifier: Apache-2.0

package stopping_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/optimize/stopping"
)

// search returns the curves of complete trials, numbered from 0, and one that
// runs, with the number -1, each with its values at the steps 1, 2, 3, …
func search(d stopping.Direction, running []float64, complete ...[]float64) *stopping.Curves {
	c := stopping.NewCurves(d)
	for trial, values := range append(complete, running) {
		if trial == len(complete) {
			trial = -1
		}
		for i, v := range values {
			c.Report(trial, i+1, v)
		}
		if trial >= 0 {
			c.End(trial, stopping.Complete)
		}
	}
	return c
}

// TestVerdicts checks verdicts that can be had by hand.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	type settings = map[string]string
	nan := math.NaN()
	three := [][]float64{{4, 2, 0}, {5, 4, 3}, {9, 9, 9}} // averages at step 2: 3, 4.5, 9
	tests := map[string]struct {
		reason   string
		rule     string
		settings settings
		curves   *stopping.Curves
		want     string // part of the reason, "" to go on
	}{
		"MedianWorse":     {"Its best of 4.6 is worse than the median 4.5.", "medianstop", settings{"start_step": "2"}, search(stopping.Minimize, []float64{8, 4.6}, three...), "its best value up to step 2, 4.6, is above 4.5, the median of the averages of 3"},
		"MedianBest":      {"The best so far counts, not the last.", "medianstop", settings{"start_step": "2"}, search(stopping.Minimize, []float64{4.4, 100}, three...), ""},
		"MedianEqual":     {"Worse means strictly.", "medianstop", settings{"start_step": "2"}, search(stopping.Minimize, []float64{4.5, 9}, three...), ""},
		"MedianEarly":     {"Four reports are wanted by default.", "medianstop", nil, search(stopping.Minimize, []float64{99, 99, 99}, three...), ""},
		"MedianFew":       {"Three trials are wanted by default.", "medianstop", settings{"start_step": "1"}, search(stopping.Minimize, []float64{99}, three[:2]...), ""},
		"MedianMean":      {"The mean, 5.5, is not what it is called.", "medianstop", settings{"start_step": "2"}, search(stopping.Minimize, []float64{5, 5}, three...), "median"},
		"MedianMaximize":  {"Less is worse when maximising.", "medianstop", settings{"start_step": "2"}, search(stopping.Maximize, []float64{4.4, 4}, three...), "4.4, is below 4.5"},
		"MedianNaN":       {"What is not a number is worse than any.", "medianstop", settings{"start_step": "1"}, search(stopping.Minimize, []float64{nan}, three...), "its best value up to step 1, +Inf"},
		"Percentile":      {"Of 0 … 4 at step 1 the quarter is 1.", "percentile", settings{"percentile": "25"}, search(stopping.Minimize, []float64{1.1}, []float64{0}, []float64{1}, []float64{2}, []float64{3}, []float64{4}), "is above 1, which 25% of 5"},
		"PercentileIn":    {"It is reached exactly.", "percentile", settings{"percentile": "25"}, search(stopping.Minimize, []float64{1}, []float64{0}, []float64{1}, []float64{2}, []float64{3}, []float64{4}), ""},
		"PercentileWarm":  {"The warm-up is not judged.", "percentile", settings{"n_warmup_steps": "2"}, search(stopping.Minimize, []float64{9}, []float64{0}, []float64{1}, []float64{2}, []float64{3}, []float64{4}), ""},
		"HalvingFirst":    {"The first at a rung passes.", "successivehalving", settings{"min_resource": "1"}, search(stopping.Minimize, []float64{9}), ""},
		"HalvingSecond":   {"One of two passes, the better.", "successivehalving", settings{"min_resource": "1"}, search(stopping.Minimize, []float64{9}, []float64{8, 8}), "its value at step 1, 9, is above 8, the worst of the 1 that pass of the 2 trials"},
		"HalvingEighth":   {"Two of eight pass.", "successivehalving", settings{"min_resource": "1"}, search(stopping.Minimize, []float64{2}, []float64{1, 0}, []float64{3}, []float64{4}, []float64{5}, []float64{6}, []float64{7}, []float64{8}), ""},
		"HalvingThird":    {"But not the third.", "successivehalving", settings{"min_resource": "1"}, search(stopping.Minimize, []float64{3.5}, []float64{1, 0}, []float64{3}, []float64{4}, []float64{5}, []float64{6}, []float64{7}, []float64{8}), "above 3, the worst of the 2 that pass of the 8"},
		"HalvingBetween":  {"Between rungs nobody is judged.", "successivehalving", settings{"min_resource": "1"}, search(stopping.Minimize, []float64{0, 9}, []float64{8, 8, 8, 8}), ""},
		"HalvingSecondUp": {"The second rung is at the factor.", "successivehalving", settings{"min_resource": "1"}, search(stopping.Minimize, []float64{0, 9, 9, 9}, []float64{8, 8, 8, 8, 8}), "at step 4"},
		"HalvingRate":     {"The first rungs can be left out.", "successivehalving", settings{"min_resource": "1", "min_early_stopping_rate": "1"}, search(stopping.Minimize, []float64{9}, []float64{8, 8}), ""},
		"HalvingAuto":     {"Auto needs a complete trial.", "successivehalving", nil, search(stopping.Minimize, []float64{9}), ""},
		"ThresholdUp":     {"Values have a bound above,", "threshold", settings{"upper": "2"}, search(stopping.Minimize, []float64{1, 3}), "3, is above the bound 2"},
		"ThresholdLow":    {"and below,", "threshold", settings{"lower": "2"}, search(stopping.Minimize, []float64{3, 1}), "1, is below the bound 2"},
		"ThresholdIn":     {"both inclusive,", "threshold", settings{"lower": "1", "upper": "2"}, search(stopping.Minimize, []float64{1, 2}), ""},
		"ThresholdNaN":    {"and are numbers.", "threshold", settings{"lower": "1"}, search(stopping.Maximize, []float64{nan}), "is not a finite number"},
		"ThresholdInf":    {"and finite.", "threshold", settings{"lower": "1"}, search(stopping.Maximize, []float64{math.Inf(1)}), "is not a finite number"},
		"MedianInf":       {"The best that was never reached is no excuse.", "medianstop", settings{"min_trials_required": "1", "start_step": "1"}, search(stopping.Minimize, []float64{math.Inf(-1), 9}, []float64{1, 1}), "9, is above 1"},
		"PatienceUp":      {"Three reports without a better value are one too many for two.", "patience", settings{"patience": "2"}, search(stopping.Minimize, []float64{5, 4, 4, 4, 4}), "improved on 4, at step 2, by more than 0 in 3 reports"},
		"PatienceLeft":    {"Two are not.", "patience", settings{"patience": "2"}, search(stopping.Minimize, []float64{5, 4, 4, 4}), ""},
		"PatienceDelta":   {"Small steps are no improvement.", "patience", settings{"patience": "2", "min_delta": "0.5"}, search(stopping.Minimize, []float64{5, 4.9, 4.8, 4.7}), "in 3 reports"},
		"PatienceSum":     {"But add up to one.", "patience", settings{"patience": "2", "min_delta": "0.25"}, search(stopping.Minimize, []float64{5, 4.9, 4.8, 4.7}), ""},
		"WilcoxonFour":    {"Worse four times of four has p = 1/16.", "wilcoxon", nil, search(stopping.Minimize, []float64{2, 3, 4, 5}, []float64{1, 1, 1, 1, 1}), "0.0625"},
		"WilcoxonThree":   {"Three times of three, 1/8, is not enough.", "wilcoxon", nil, search(stopping.Minimize, []float64{2, 3, 4}, []float64{1, 1, 1, 1, 1}), ""},
		"WilcoxonMean":    {"Nor is being worse often, but better on average.", "wilcoxon", settings{"p_threshold": "0.5"}, search(stopping.Minimize, []float64{2, 3, 4, -99}, []float64{1, 1, 1, 1, 1}), ""},
		"FittingFlat":     {"A flat curve far from the best will stay so.", "curvefitting", nil, search(stopping.Minimize, []float64{2, 1.5, 1.25, 1.12, 1.06, 1.03, 1.01}, descent(0), descent(0.1), descent(0.2)), "is extrapolated to about 0.9"},
		"FittingSteep":    {"A steep one may come there.", "curvefitting", nil, search(stopping.Minimize, []float64{2, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4}, descent(0), descent(0.1), descent(0.2)), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := mustRule(t, tc.rule, tc.settings).Judge(tc.curves, -1)
			if v.Stop != (tc.want != "") || !strings.Contains(v.Reason, tc.want) {
				t.Errorf("%s Judge: got %+v, want %q", tc.reason, v, tc.want)
			}
		})
	}
}

// descent returns a curve of 30 steps that ends near a level.
func descent(level float64) []float64 {
	var values []float64
	for i := range 30 {
		values = append(values, level+math.Exp(-float64(i)/4))
	}
	return values
}

func TestMedianLimits(t *testing.T) {
	t.Parallel()
	rule := mustRule(t, "medianstop", map[string]string{"start_step": "2"}).(stopping.Limiter)
	want := []stopping.Limit{{Step: 2, Value: 4.5, Best: true}, {Step: 3, Value: 4, Best: true}}
	got := rule.Limits(search(stopping.Minimize, nil, []float64{4, 2, 0}, []float64{5, 4, 3}, []float64{9, 9, 9}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits: -want, +got:\n%s", diff)
	}
}

// TestSteps checks that a trial which repeats itself after a crash is judged as
// if it had not, and that curves with other steps are compared up to the same.
func TestSteps(t *testing.T) {
	t.Parallel()
	c := stopping.NewCurves(stopping.Minimize)
	for trial := range 3 {
		c.Report(trial, 10, 1)
		c.Report(trial, 20, 0)
		c.End(trial, stopping.Complete)
	}
	rule := mustRule(t, "medianstop", map[string]string{"start_step": "2"})
	for _, r := range []struct {
		reason string
		step   int
		value  float64
		stop   bool
	}{
		{"One report is too few.", 5, 0.8, false},
		{"So are two with the same step.", 5, 0.7, false},
		{"Up to step 15 the averages are 1.", 15, 0.9, false},
		{"Steps do not go back.", 3, -5, false},
		{"Up to step 20 they are 0.5.", 20, 0.9, true},
	} {
		c.Report(7, r.step, r.value)
		if v := rule.Judge(c, 7); v.Stop != r.stop {
			t.Errorf("%s Judge after step %d: got %+v", r.reason, r.step, v)
		}
	}
	if step, value, ok := c.Last(7); step != 20 || value != 0.9 || !ok {
		t.Errorf("last report is %d, %v, %v: want 20, 0.9", step, value, ok)
	}
}

// TestNew checks names and settings.
func TestNew(t *testing.T) {
	t.Parallel()
	type settings = map[string]string
	tests := map[string]struct {
		rule     string
		settings settings
		want     string // part of the error, "" for none
	}{
		"Defaults":     {"medianstop", nil, ""},
		"Katib":        {"medianstop", settings{"min_trials_required": "1", "start_step": "1"}, ""},
		"NoTrials":     {"medianstop", settings{"min_trials_required": "0"}, "min_trials_required is 0: want an integer from 1"},
		"NoStep":       {"medianstop", settings{"start_step": "0"}, "start_step is 0"},
		"Word":         {"medianstop", settings{"start_step": "four"}, `start_step is "four": want an integer`},
		"Both":         {"medianstop", settings{"start_step": "x", "begin": "1"}, `unknown setting "begin": want one of min_trials_required, start_step`},
		"Percent":      {"percentile", settings{"percentile": "101"}, "percentile is 101: want a number from 0 to 100"},
		"NaN":          {"percentile", settings{"percentile": "NaN"}, `percentile is "NaN"`},
		"Auto":         {"successivehalving", settings{"min_resource": "auto"}, ""},
		"NoResource":   {"successivehalving", settings{"min_resource": "0"}, `min_resource is "0": want auto`},
		"Factor":       {"successivehalving", settings{"reduction_factor": "1"}, "reduction_factor is 1"},
		"Most":         {"hyperband", settings{"max_resource": "2", "min_resource": "3"}, "max_resource is 2"},
		"NoBound":      {"threshold", nil, "lower and upper are not set"},
		"Empty":        {"threshold", settings{"lower": "2", "upper": "1"}, "lower is 2"},
		"Impatient":    {"patience", nil, "patience is required"},
		"Wrapped":      {"patience", settings{"patience": "1", "rule": "wilcoxon", "p_threshold": "0.2"}, ""},
		"WrappedWrong": {"patience", settings{"patience": "1", "rule": "wilcoxon", "p_threshold": "2"}, "p_threshold is 2"},
		"WrappedNone":  {"patience", settings{"patience": "1", "rule": "patience"}, `rule is "patience"`},
		"NotWrapped":   {"patience", settings{"patience": "1", "p_threshold": "2"}, `unknown setting "p_threshold"`},
		"P":            {"wilcoxon", settings{"p_threshold": "-0.1"}, "p_threshold is -0.1"},
		"Fitting":      {"curvefitting", settings{"start_step": "2"}, "start_step is 2"},
		"Unknown":      {"medium", nil, "unknown early stopping rule"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := stopping.New(tc.rule, tc.settings)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New: got %v, want %q", err, tc.want)
			}
		})
	}
	for _, known := range stopping.Known() {
		settings := settings{}
		if known.Name == "threshold" {
			settings["upper"] = "1"
		}
		if known.Name == "patience" {
			settings["patience"] = "1"
		}
		if _, err := stopping.New(known.Name, settings); err != nil {
			t.Errorf("rule %s: %v", known.Name, err)
		}
	}
}
