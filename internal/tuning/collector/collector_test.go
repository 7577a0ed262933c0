// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// known is the trials of a test by name.
type known map[string]*v1beta1.Trial

func (k known) Spec(_ context.Context, t observation.Trial) (*collector.Spec, bool, error) {
	trial, ok := k[t.Name]
	if !ok {
		return nil, false, nil
	}
	return collector.SpecOf(trial), true, nil
}

func trial(kind v1beta1.CollectorKind, change func(*v1beta1.TrialSpec)) *v1beta1.Trial {
	t := &v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "trial"},
		Spec: v1beta1.TrialSpec{
			Objective:            &v1beta1.ObjectiveSpec{ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"acc"}},
			PrimaryContainerName: "main",
			MetricsCollector:     v1beta1.MetricsCollectorSpec{Collector: &v1beta1.CollectorSpec{Kind: kind}},
		},
	}
	if change != nil {
		change(&t.Spec)
	}
	return t
}

func pod(labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "trial-x", UID: "u-1", Labels: labels}}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	labelled := map[string]string{v1beta1.LabelTrial: "trial", "role": "master"}
	tests := map[string]struct {
		reason    string
		trial     *v1beta1.Trial
		labels    map[string]string
		container string
		observed  bool
		err       bool
	}{
		"StdOut":  {reason: "The primary container's output is read.", trial: trial("StdOut", nil), labels: labelled, container: "main", observed: true},
		"Default": {reason: "StdOut is the default.", trial: trial("", nil), labels: labelled, container: "main", observed: true},
		"File":    {reason: "A file is read at Katib's default place.", trial: trial("File", nil), labels: labelled, container: "main", observed: true},
		"FilePath": {reason: "Or where the experiment says.", trial: trial("File", func(s *v1beta1.TrialSpec) {
			s.MetricsCollector.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: "/m/log", Format: "JSON"}}
		}), labels: labelled, container: "main", observed: true},
		"None":       {reason: "None collects nothing.", trial: trial("None", nil), labels: labelled, container: "main"},
		"Custom":     {reason: "A collector of the user's reports by itself.", trial: trial("Custom", nil), labels: labelled, container: "main"},
		"Push":       {reason: "So does a program that pushes.", trial: trial("Push", nil), labels: labelled, container: "main"},
		"Unknown":    {reason: "A kind that validation let through is named.", trial: trial("Telepathy", nil), labels: labelled, container: "main", err: true},
		"OtherOne":   {reason: "Other containers are not read.", trial: trial("StdOut", nil), labels: labelled, container: "sidecar"},
		"NotPrimary": {reason: "Only the Pods count that the trial names.", trial: trial("StdOut", func(s *v1beta1.TrialSpec) { s.PrimaryPodLabels = map[string]string{"role": "worker"} }), labels: labelled, container: "main"},
		"Primary":    {reason: "Those do.", trial: trial("StdOut", func(s *v1beta1.TrialSpec) { s.PrimaryPodLabels = map[string]string{"role": "master"} }), labels: labelled, container: "main", observed: true},
		"NoTrial":    {reason: "Most Pods are no trials.", trial: trial("StdOut", nil), container: "main"},
		"TrialGone":  {reason: "A trial may be deleted before its Pod.", trial: trial("StdOut", nil), labels: map[string]string{v1beta1.LabelTrial: "gone"}, container: "main"},
		"UnknownFormat": {reason: "A format that validation let through is named.", trial: trial("File", func(s *v1beta1.TrialSpec) {
			s.MetricsCollector.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Format: "XML"}}
		}), labels: labelled, container: "main", err: true},
		"BadFilter": {reason: "So is a filter.", trial: trial("StdOut", func(s *v1beta1.TrialSpec) {
			s.MetricsCollector.Source = &v1beta1.SourceSpec{Filter: &v1beta1.FilterSpec{MetricsFormat: []string{"("}}}
		}), labels: labelled, container: "main", err: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := collector.New(known{"trial": tc.trial}, memory.New(), collector.DefaultConfig())
			observer, err := c.Observe(t.Context(), subject(pod(tc.labels), tc.container, 0, t.TempDir()))
			if (err != nil) != tc.err {
				t.Fatalf("%s Observe: got error %v, want one: %v", tc.reason, err, tc.err)
			}
			if (observer != nil) != tc.observed {
				t.Fatalf("%s Observe: got %v, want an observer: %v", tc.reason, observer, tc.observed)
			}
		})
	}
}

// subject is a run whose files lie in a directory of this machine.
func subject(pod *corev1.Pod, container string, attempt int, dir string) collector.Subject {
	return collector.Subject{
		Pod: pod, Container: container, Attempt: attempt, Address: "127.0.0.1",
		Output:      filepath.Join(dir, fmt.Sprintf("%d.log", attempt)),
		OutputStart: func() int64 { return 0 },
		HostPath:    func(path string) (string, bool) { return filepath.Join(dir, path), true },
		Warn:        func(string) {},
	}
}

// TestAttempts checks that each run of a container is a source of its own, but
// a file, which outlives them, is one for all.
func TestAttempts(t *testing.T) {
	t.Parallel()
	labels := map[string]string{v1beta1.LabelTrial: "trial"}
	id := observation.Trial{Namespace: "team", Name: "trial"}
	tests := map[string]struct {
		kind v1beta1.CollectorKind
		want int
	}{
		"StdOut": {kind: "StdOut", want: 2},
		"File":   {kind: "File", want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory.New()
			c := collector.New(known{"trial": trial(tc.kind, nil)}, store, collector.DefaultConfig())
			dir := t.TempDir()
			for attempt := range 2 {
				run := subject(pod(labels), "main", attempt, dir)
				file, _ := run.HostPath("/var/log/katib/metrics.log")
				if tc.kind == "StdOut" {
					file = run.Output
				}
				add(t, file, "loss=1\n")
				observer, err := c.Observe(t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				if err := observer.Finish(t.Context(), metav1.Now().Time); err != nil {
					t.Fatal(err)
				}
				observer.Close()
			}
			points, err := store.Points(t.Context(), id, observation.Query{})
			if err != nil || len(points) != tc.want {
				t.Errorf("%d points, %v; want %d", len(points), err, tc.want)
			}
		})
	}
}

// add appends to a file that may not be there yet.
func add(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestSpecOf(t *testing.T) {
	t.Parallel()
	got := collector.SpecOf(trial("File", func(s *v1beta1.TrialSpec) {
		s.PrimaryPodLabels = map[string]string{"role": "master"}
		s.MetricsCollector.Source = &v1beta1.SourceSpec{
			FileSystemPath: &v1beta1.FileSystemPath{Path: "/m/log", Format: "TEXT"},
			Filter:         &v1beta1.FilterSpec{MetricsFormat: []string{`(a)=(b)`}},
		}
	}))
	want := &collector.Spec{
		Trial: observation.Trial{Namespace: "team", Name: "trial"}, Kind: collector.File, Path: "/m/log", Format: collector.Text,
		Filters: []string{`(a)=(b)`}, Metrics: []string{"loss", "acc"}, Container: "main", PodLabels: map[string]string{"role": "master"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SpecOf(...): -want, +got:\n%s", diff)
	}
}
