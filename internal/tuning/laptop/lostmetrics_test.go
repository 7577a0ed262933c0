// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

func TestLostMetrics(t *testing.T) {
	t.Parallel()
	store := memory.New()
	t.Cleanup(func() { _ = store.Close() })
	batch := observation.Batch{Source: "s", To: 1, Points: []observation.Point{{Time: time.Unix(1, 0), Metric: "loss", Value: "1"}}}
	if err := store.Append(t.Context(), observation.Trial{Namespace: "ns", Name: "kept"}, batch); err != nil {
		t.Fatal(err)
	}
	trial := func(name string, metrics ...v1beta1.Metric) v1beta1.Trial {
		var trial v1beta1.Trial
		trial.Namespace, trial.Name = "ns", name
		trial.Status.Observation = &v1beta1.Observation{Metrics: metrics}
		return trial
	}
	value := v1beta1.Metric{Name: "loss", Latest: "1"}
	for _, tc := range []struct {
		reason string
		trials []v1beta1.Trial
		want   string
	}{
		{"a new home", nil, ""},
		{"trials that have reported nothing yet", []v1beta1.Trial{{}, trial("runs")}, ""},
		{"their values are there", []v1beta1.Trial{trial("kept", value)}, ""},
		{"a client deleted some", []v1beta1.Trial{trial("deleted", value), trial("kept", value)}, ""},
		{"another store, or a new one", []v1beta1.Trial{trial("a", value), trial("runs"), trial("b", value)}, "no metrics of the 2 trials that have values, such as ns/a;"},
	} {
		got, err := lostMetrics(t.Context(), tc.trials, store)
		if err != nil || tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, %v; want %q", tc.reason, got, err, tc.want)
		}
	}
}
