// SPDX-License-Identifier: Apache-2.0

package earlystopping_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
	"diwan.dev/diwan/optimize/stopping"
)

// lab is an experiment with its trials and what they have reported.
type lab struct {
	store      *memory.Store
	experiment *v1beta1.Experiment
	trials     []*v1beta1.Trial
	values     [][]float64
	client.Reader
}

// List implements client.Reader.
func (l *lab) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if trials, ok := list.(*v1beta1.TrialList); ok {
		for _, t := range l.trials {
			trials.Items = append(trials.Items, *t)
		}
	}
	return nil
}

func newLab(rule string, settings ...v1beta1.EarlyStoppingSetting) *lab {
	e := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e"}}
	e.Spec.Objective = minimize
	e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: rule, AlgorithmSettings: settings}
	return &lab{store: memory.New(), experiment: e}
}

func setting(name, value string) v1beta1.EarlyStoppingSetting {
	return v1beta1.EarlyStoppingSetting{Name: name, Value: value}
}

// begin adds a trial.
func (l *lab) begin() int {
	n := len(l.trials)
	l.trials = append(l.trials, &v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("e-", n), Annotations: map[string]string{v1beta1.AnnotationTrialIndex: strconv.Itoa(n)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(l.experiment, v1beta1.GroupVersion.WithKind("Experiment"))},
		},
		Spec: v1beta1.TrialSpec{Objective: minimize},
	})
	l.values = append(l.values, nil)
	return n
}

// report has a trial report values.
func (l *lab) report(t rapid.TB, trial int, values ...float64) {
	t.Helper()
	for _, v := range values {
		n := int64(len(l.values[trial]))
		l.values[trial] = append(l.values[trial], v)
		err := l.store.Append(context.Background(), observation.Trial{Name: l.trials[trial].Name}, observation.Batch{
			Source: "s", From: n, To: n + 1,
			Points: []observation.Point{{Time: time.Unix(n, 0), Metric: "loss", Value: strconv.FormatFloat(v, 'g', -1, 64)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (l *lab) end(trial int, c v1beta1.ConditionType) {
	l.trials[trial].Status.Conditions.Set(metav1.Time{}, c, corev1.ConditionTrue, "", "")
	l.trials[trial].Status.CompletionTime = &metav1.Time{}
}

// complete adds a trial that ran to its end.
func (l *lab) complete(t rapid.TB, values ...float64) {
	trial := l.begin()
	l.report(t, trial, values...)
	l.end(trial, v1beta1.ConditionSucceeded)
}

func (l *lab) judge(t rapid.TB, h *earlystopping.History, trial int) earlystopping.Decision {
	t.Helper()
	d, err := h.Judge(context.Background(), l.experiment, l.trials[trial], l.values[trial])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMedianOfWhatIsStored(t *testing.T) {
	t.Parallel()
	l := newLab("medianstop", setting("min_trials_required", "3"), setting("start_step", "2"))
	l.complete(t, 4, 2, 0)
	l.complete(t, 5, 4, 3)
	l.complete(t, 9, 9, 9)
	trial := l.begin()
	h := earlystopping.NewHistory(l.store, l)
	l.report(t, trial, 8)
	if d := l.judge(t, h, trial); d.Stop() {
		t.Errorf("stopped before start_step: %v", d)
	}
	l.report(t, trial, 4.6, 0.1)
	want := earlystopping.Decision{Step: 2, Why: "its best value up to step 2, 4.6, is above 4.5, the median of the averages of 3 complete trials up to then"}
	for range 2 { // it stays until it is heeded
		if diff := cmp.Diff(want, l.judge(t, h, trial)); diff != "" {
			t.Errorf("each report is judged: -want, +got:\n%s", diff)
		}
	}
	if d := l.judge(t, earlystopping.NewHistory(l.store, l), trial); d.Stop() {
		t.Errorf("a later process judges the last report, 0.1, which is good, but says %v", d)
	}
	rules, err := h.Fixed(t.Context(), l.experiment)
	if diff := cmp.Diff([]v1beta1.EarlyStoppingRule{{Name: "loss", Value: "4.5", Comparison: "greater", StartStep: 2}}, rules); err != nil || diff != "" {
		t.Errorf("the rule for a new trial is (%v): -want, +got:\n%s", err, diff)
	}
}

func TestEndedTrialsCount(t *testing.T) {
	t.Parallel()
	l := newLab("medianstop", setting("min_trials_required", "1"), setting("start_step", "1"))
	first, second := l.begin(), l.begin()
	h := earlystopping.NewHistory(l.store, l)
	l.report(t, first, 1)
	l.report(t, second, 2)
	if d := l.judge(t, h, second); d.Stop() {
		t.Errorf("stopped by a trial that has not ended: %v", d)
	}
	for _, c := range []v1beta1.ConditionType{v1beta1.ConditionFailed, v1beta1.ConditionSucceeded} {
		l.trials[first].Status = v1beta1.TrialStatus{}
		l.end(first, c)
		h := earlystopping.NewHistory(l.store, l)
		l.judge(t, h, second)
		for range 2 {
			if err := h.End(t.Context(), l.trials[first]); err != nil {
				t.Fatal(err)
			}
		}
		l.report(t, second, 3)
		if d := l.judge(t, h, second); d.Stop() != (c == v1beta1.ConditionSucceeded) {
			t.Errorf("after the first trial is %s: %v", c, d)
		}
	}
}

func TestTrialThatBeginsAnew(t *testing.T) {
	t.Parallel()
	l := newLab("patience", setting("patience", "1"))
	trial := l.begin()
	h := earlystopping.NewHistory(l.store, l)
	l.report(t, trial, 5, 6)
	l.judge(t, h, trial)
	l.values[trial] = []float64{9}
	if d := l.judge(t, h, trial); d.Stop() {
		t.Errorf("the first run counts: %v", d)
	}
	l.values[trial] = []float64{9, 8, 7, 7.5, 7.6}
	if d := l.judge(t, h, trial); d.Step != 5 {
		t.Errorf("%+v, want a stop at step 5", d)
	}
	h.Forget(l.trials[trial])
	l.values[trial] = []float64{1, 1, 1, 1, 0}
	if d := l.judge(t, h, trial); d.Step != 3 {
		t.Errorf("%+v, want a stop at step 3: the deleted trial is another", d)
	}
}

func TestNobodysRule(t *testing.T) {
	t.Parallel()
	l := newLab("of-a-service")
	trial := l.begin()
	h := earlystopping.NewHistory(l.store, l)
	l.report(t, trial, 1)
	if d := l.judge(t, h, trial); d.Stop() {
		t.Error(d)
	}
	if err := earlystopping.Check(l.experiment.Spec.EarlyStopping); !errors.Is(err, stopping.ErrUnknown) {
		t.Errorf("Check() = %v", err)
	}
	if rules, err := h.Fixed(t.Context(), l.experiment); rules != nil || err != nil {
		t.Errorf("Fixed() = %v, %v", rules, err)
	}
}

// TestHistoryModel compares a history, which is told of things in any order and
// late, with a rule that sees everything at once.
func TestHistoryModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"medianstop", "percentile", "successivehalving", "hyperband", "wilcoxon", "curvefitting"}).Draw(rt, "rule")
		l := newLab(name)
		switch name {
		case "medianstop":
			l = newLab(name, setting("min_trials_required", "1"), setting("start_step", "1"))
		case "percentile":
			l = newLab(name, setting("n_startup_trials", "1"))
		}
		rule, err := earlystopping.New(l.experiment.Spec.EarlyStopping)
		if err != nil {
			rt.Fatal(err)
		}
		curves := stopping.NewCurves(stopping.Minimize)
		h := earlystopping.NewHistory(l.store, l)
		if _, err := h.Fixed(context.Background(), l.experiment); err != nil { // it is asked before the first trial
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			trial := rapid.IntRange(0, len(l.trials)).Draw(rt, "trial")
			switch {
			case trial == len(l.trials):
				l.begin()
			case l.trials[trial].IsCompleted():
				if err := h.End(context.Background(), l.trials[trial]); err != nil {
					rt.Fatal(err)
				}
			case rapid.IntRange(0, 5).Draw(rt, "end") == 0:
				l.end(trial, v1beta1.ConditionSucceeded)
				curves.End(trial, stopping.Complete)
				if err := h.End(context.Background(), l.trials[trial]); err != nil {
					rt.Fatal(err)
				}
			default:
				var want stopping.Verdict
				for _, v := range rapid.SliceOfN(rapid.Float64Range(0, 9), 1, 4).Draw(rt, "values") {
					l.report(rt, trial, v)
					curves.Report(trial, len(l.values[trial]), v)
					if want = rule.Judge(curves, trial); want.Stop {
						break
					}
				}
				got := l.judge(rt, h, trial)
				if got.Why != want.Reason || got.Stop() && got.Step != len(l.values[trial]) {
					rt.Fatalf("trial %d with %v: got %+v, want %+v", trial, l.values[trial], got, want)
				}
				if want.Stop {
					l.end(trial, v1beta1.ConditionEarlyStopped)
					curves.End(trial, stopping.Stopped)
					if err := h.End(context.Background(), l.trials[trial]); err != nil {
						rt.Fatal(err)
					}
				}
			}
		}
	})
}

// BenchmarkJudge judges a report in a search of thousands of trials.
func BenchmarkJudge(b *testing.B) {
	for _, name := range []string{"medianstop", "percentile", "successivehalving", "curvefitting"} {
		b.Run(name, func(b *testing.B) {
			l := newLab(name)
			for i := range 5000 {
				l.complete(b, 1, 1+float64(i%7), 1, 2, 3, 1, 1, 1, 1, 1)
			}
			trial := l.begin()
			h := earlystopping.NewHistory(l.store, l)
			l.values[trial] = []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}
			l.judge(b, h, trial)
			values := l.values[trial]
			b.ResetTimer()
			for b.Loop() {
				l.values[trial] = values[:8]
				h.Forget(l.trials[trial])
				l.judge(b, h, trial)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*8), "ns/report")
		})
	}
}
