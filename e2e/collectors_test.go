// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestTensorFlowEvents runs the example whose trials write event files, by a
// package that writes real ones.
func TestTensorFlowEvents(t *testing.T) {
	t.Parallel()
	python := environment(t, "tensorboard.txt")
	s := newServer(t)
	s.mapped(t, "example.com/tensorboard", "--path", filepath.Dir(python))
	s.succeeds(t, root+"/examples/collectors/tensorflow-event.yaml")
	for _, trial := range s.trialsOf("events") {
		for _, name := range []string{"test/loss", "train/loss"} {
			if m := observed(trial, name); m["min"] == "" || m["min"] != m["latest"] || m["max"] == m["min"] {
				t.Errorf("trial %s observed %v as %s, want a loss that falls", trial.GetName(), m, name)
			}
		}
	}
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
	if os.Getuid() != 0 {
		t.Skip("without network namespaces, other tests may use port 8080; this needs root")
	}
	s := newServer(t)
	s.succeeds(t, root+"/examples/collectors/prometheus.yaml")
	for _, trial := range s.trialsOf("served") {
		loss, accuracy := observed(trial, `loss{phase="test"}`), observed(trial, "accuracy")
		if loss["latest"] == "" || loss["min"] != loss["latest"] || loss["max"] == loss["min"] || accuracy["max"] != accuracy["latest"] {
			t.Errorf("trial %s observed %v and %v, want a loss that falls", trial.GetName(), loss, accuracy)
		}
	}
}

// TestCollectorsSayWhatLacks checks that a trial whose metrics are not where
// they are looked for ends, and its user learns why.
func TestCollectorsSayWhatLacks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for kind, want := range map[string]string{
		"TensorFlowEvent":  "there is no event file in /var/log/katib/tfevent",
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
	if os.Getuid() != 0 {
		t.Skip("the name of the DB manager leads Pods to it where they have hosts files; this needs root")
	}
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
