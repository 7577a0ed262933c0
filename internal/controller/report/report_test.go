// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/controller/report"
)

func TestNormalEventsHaveABudget(t *testing.T) {
	t.Parallel()
	recorder := events.NewFakeRecorder(10_000)
	e := report.NewEvents(recorder)
	for range 1000 {
		e.Normal(&v1beta1.Trial{}, v1beta1.ReasonJobCreated, "Job %s has been created", "x")
	}
	if n := len(recorder.Events); n < 50 || n > 500 {
		t.Errorf("%d of 1000 events passed, want the burst of 50 and little more", n)
	}
	before := len(recorder.Events)
	e.Normal(&v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "quiet"}}, v1beta1.ReasonJobCreated, "Job %s has been created", "y")
	if len(recorder.Events) != before+1 {
		t.Error("a busy namespace silences another")
	}
	e.Warning(&v1beta1.Trial{}, v1beta1.ReasonReconcileError, "%s", strings.Repeat("ä", 1000))
	var last string
	for len(recorder.Events) > 0 {
		last = <-recorder.Events
	}
	if !strings.HasPrefix(last, "Warning ReconcileError ") || !strings.HasSuffix(last, "ä...") || len(last) > 1100 {
		t.Errorf("the warning is %q, want it to pass, cut between characters", last)
	}
}

// lists are objects to count.
type lists struct{ client.Reader }

// List implements client.Reader.
func (lists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if trials, ok := list.(*v1beta1.TrialList); ok {
		trials.Items = make([]v1beta1.Trial, 3)
		for i := range trials.Items[:2] {
			trials.Items[i].Namespace = "a"
			trials.Items[i].Status.Conditions = v1beta1.Conditions{{Type: v1beta1.ConditionSucceeded, Status: corev1.ConditionTrue}}
		}
	}
	return nil
}

func TestMetricsBearKatibsNames(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := report.NewMetrics(registry, lists{})
	if err != nil {
		t.Fatal(err)
	}
	m.TrialsSucceeded.WithLabelValues("a").Inc()
	again, err := report.NewMetrics(registry, lists{})
	if err != nil {
		t.Fatalf("a second manager in one process: %v", err)
	}
	again.TrialsSucceeded.WithLabelValues("a").Inc()

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"katib_trial_succeeded_total a":    2,
		"katib_trials_current a Succeeded": 2,
		"katib_trials_current  Unknown":    1,
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v; there are %v", name, got[name], value, got)
		}
	}
}
