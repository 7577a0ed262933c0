// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// TestTensorFlowEvents runs the example whose trials write event files, by a
// package that writes real ones.
func TestTensorFlowEvents(t *testing.T) {
	t.Parallel()
	python := environment(t, "tensorboard.txt")
	s := newServer(t)
	s.mapped(t, "example.com/tensorboard", "--path", filepath.Dir(python))
	s.succeeds(t, root+"/examples/collectors/tensorflow-event.yaml")
	checkEvents(t, s.trialsOf("events"))
}

// checkEvents wants the losses that the program of the example writes.
func checkEvents(t *testing.T, trials []unstructured.Unstructured) {
	t.Helper()
	for _, trial := range trials {
		for name, share := range map[string]float64{"test/loss": 1, "train/loss": 0.5} {
			m, left := observed(trial, name), remainder(t, &trial)
			if !near(m["max"], share*left) || !near(m["min"], share*math.Pow(left, 20)) || m["latest"] != m["min"] {
				t.Errorf("trial %s with %s observed %v as %s", trial.GetName(), assignments(&trial), m, name)
			}
		}
	}
}

// remainder is the part of the distance from the least of the examples' parabola
// that a step of a trial leaves.
func remainder(t *testing.T, trial *unstructured.Unstructured) float64 {
	t.Helper()
	lr, err := strconv.ParseFloat(strings.TrimPrefix(assignments(trial), "lr="), 64)
	if err != nil {
		t.Fatal(err)
	}
	return 1 - 2*lr
}

// near reports whether a value that was observed is another but for rounding: that
// of single precision, and that of the programs, which subtract numbers near 1.
func near(observed any, want float64) bool {
	v, err := strconv.ParseFloat(fmt.Sprint(observed), 64)
	return err == nil && math.Abs(v-want) <= 1e-6*want+1e-12
}

// TestPrometheus runs the example whose trials serve metrics.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("python3 is not installed")
	}
	rootlesstest.NeedNamespaces(t) // other tests may use port 8080
	s := newServer(t)
	s.succeeds(t, root+"/examples/collectors/prometheus.yaml")
	checkServed(t, s.trialsOf("served"))
}

// checkServed wants the last values that the program of the example serves, and
// others before them.
func checkServed(t *testing.T, trials []unstructured.Unstructured) {
	t.Helper()
	for _, trial := range trials {
		loss, accuracy := observed(trial, `loss{phase="test"}`), observed(trial, "accuracy")
		left := math.Pow(remainder(t, &trial), 8)
		if !near(loss["latest"], left) || loss["min"] != loss["latest"] || loss["max"] == loss["min"] ||
			!near(accuracy["latest"], 1/(1+left)) || accuracy["max"] != accuracy["latest"] {
			t.Errorf("trial %s with %s observed %v and %v", trial.GetName(), assignments(&trial), loss, accuracy)
		}
	}
}

// TestCollectorsSayWhatLacks checks that a trial whose metrics are not where
// they are looked for ends, and its user learns why.
func TestCollectorsSayWhatLacks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for kind, want := range map[string]string{
		"TensorFlowEvent":  "no event file in /var/log/katib/tfevent",
		"PrometheusMetric": "connection refused",
	} {
		x := shape{
			name: strings.ToLower(kind), trials: 1, parallel: 1, command: "echo ${trialParameters.x}",
			spec: "  metricsCollectorSpec: {collector: {kind: " + kind + "}}",
		}
		if err := x.create(s); err != nil {
			t.Fatal(err)
		}
		s.ended("default", x.name, time.Minute)
		trial := s.trialsOf(x.name)[0]
		if conditions := fmt.Sprint(trial.Object["status"]); !strings.Contains(conditions, "MetricsUnavailable") {
			t.Errorf("%s: the trial has %s", kind, conditions)
		}
		events, _, _ := s.diwan("kubectl", "get", "events", "--field-selector=reason=MetricsCollection")
		if !strings.Contains(events, want) {
			t.Errorf("%s: %q is not in\n%s", kind, want, events)
		}
	}
}

// TestCustomCollector runs Katib's example of a collector of the user's, with
// small programs in the place of its images. It reports as the Pod ends.
func TestCustomCollector(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t) // the name of the DB manager leads Pods to it where they have hosts files
	python := sdks(t)
	s := newServer(t)
	s.mapped(t, "ghcr.io/kubeflow/katib/pytorch-mnist-cpu", "--file", "/opt/pytorch-mnist="+abs(t, "testdata/mnist"))
	s.mapped(t, "ghcr.io/kubeflow/katib/custom-metrics-collector", "--command", python, "--", abs(t, "testdata/collector/collect.py"))
	s.succeeds(t, root+"/examples/katib/jobs/custom-metrics-collector.yaml")
	list, err := s.client().Resource(trials).Namespace("kubeflow").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("%d trials, %v", len(list.Items), err)
	}
	for _, trial := range list.Items {
		if m := observed(trial, "accuracy"); m["latest"] == "" {
			t.Errorf("trial %s observed %v", trial.GetName(), trial.Object["status"])
		}
	}
}

// observed is what a trial's status shows of a metric.
func observed(trial unstructured.Unstructured, metric string) map[string]any {
	metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
	for _, m := range metrics {
		if m, _ := m.(map[string]any); m["name"] == metric {
			return m
		}
	}
	return nil
}
