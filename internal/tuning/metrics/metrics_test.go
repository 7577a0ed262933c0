// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/metrics"
)

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
	m, err := metrics.NewMetrics(registry, lists{})
	if err != nil {
		t.Fatal(err)
	}
	m.TrialsSucceeded.WithLabelValues("a").Inc()
	again, err := metrics.NewMetrics(registry, lists{})
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
