// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/collector"
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
		path      string
		err       error
	}{
		"StdOut":  {reason: "The primary container's output is read.", trial: trial("StdOut", nil), labels: labelled, container: "main", observed: true},
		"Default": {reason: "StdOut is the default.", trial: trial("", nil), labels: labelled, container: "main", observed: true},
		"File":    {reason: "A file is read at Katib's default place.", trial: trial("File", nil), labels: labelled, container: "main", observed: true, path: "/var/log/katib/metrics.log"},
		"FilePath": {reason: "Or where the experiment says.", trial: trial("File", func(s *v1beta1.TrialSpec) {
			s.MetricsCollector.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: "/m/log", Format: "JSON"}}
		}), labels: labelled, container: "main", observed: true, path: "/m/log"},
		"None":       {reason: "None collects nothing.", trial: trial("None", nil), labels: labelled, container: "main"},
		"Later":      {reason: "What is not there yet says so.", trial: trial("PrometheusMetric", nil), labels: labelled, container: "main", err: collector.ErrUnavailable},
		"OtherOne":   {reason: "Other containers are not read.", trial: trial("StdOut", nil), labels: labelled, container: "sidecar"},
		"NotPrimary": {reason: "Only the Pods count that the trial names.", trial: trial("StdOut", func(s *v1beta1.TrialSpec) { s.PrimaryPodLabels = map[string]string{"role": "worker"} }), labels: labelled, container: "main"},
		"Primary":    {reason: "Those do.", trial: trial("StdOut", func(s *v1beta1.TrialSpec) { s.PrimaryPodLabels = map[string]string{"role": "master"} }), labels: labelled, container: "main", observed: true},
		"NoTrial":    {reason: "Most Pods are no trials.", trial: trial("StdOut", nil), container: "main"},
		"TrialGone":  {reason: "A trial may be deleted before its Pod.", trial: trial("StdOut", nil), labels: map[string]string{v1beta1.LabelTrial: "gone"}, container: "main"},
		"UnknownFormat": {reason: "A format that validation let through is named.", trial: trial("File", func(s *v1beta1.TrialSpec) {
			s.MetricsCollector.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Format: "XML"}}
		}), labels: labelled, container: "main", err: errAny},
		"BadFilter": {reason: "So is a filter.", trial: trial("StdOut", func(s *v1beta1.TrialSpec) {
			s.MetricsCollector.Source = &v1beta1.SourceSpec{Filter: &v1beta1.FilterSpec{MetricsFormat: []string{"("}}}
		}), labels: labelled, container: "main", err: errAny},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := collector.New(known{"trial": tc.trial}, memory.New(), collector.DefaultConfig())
			stream, err := c.Observe(t.Context(), pod(tc.labels), tc.container, 0)
			if (err != nil) != (tc.err != nil) || tc.err != nil && tc.err != errAny && !errors.Is(err, tc.err) {
				t.Fatalf("%s Observe: got error %v, want %v", tc.reason, err, tc.err)
			}
			if (stream != nil) != tc.observed {
				t.Fatalf("%s Observe: got stream %v, want one: %v", tc.reason, stream, tc.observed)
			}
			if stream != nil && stream.Path() != tc.path {
				t.Errorf("%s Path() = %q, want %q", tc.reason, stream.Path(), tc.path)
			}
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

// TestAttempts checks that each run of a container is a source of its own, but
// a file, which outlives them, is one for all.
func TestAttempts(t *testing.T) {
	t.Parallel()
	labels := map[string]string{v1beta1.LabelTrial: "trial"}
	id := observation.Trial{Namespace: "team", Name: "trial"}
	tests := map[string]struct {
		kind   v1beta1.CollectorKind
		offset int64
		want   int
	}{
		"StdOut": {kind: "StdOut", offset: 0, want: 2},
		"File":   {kind: "File", offset: 7, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory.New()
			c := collector.New(known{"trial": trial(tc.kind, nil)}, store, collector.DefaultConfig())
			for attempt := range 2 {
				stream, err := c.Observe(t.Context(), pod(labels), "main", attempt)
				if err != nil {
					t.Fatal(err)
				}
				offset, err := stream.Offset(t.Context())
				if err != nil || offset != int64(attempt)*tc.offset {
					t.Fatalf("attempt %d: Offset = %d, %v; want %d", attempt, offset, err, int64(attempt)*tc.offset)
				}
				if err := stream.Write(t.Context(), offset, []byte("loss=1\n"), metav1.Now().Time); err != nil {
					t.Fatal(err)
				}
				if err := stream.Finish(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			points, err := store.Points(t.Context(), id, observation.Query{})
			if err != nil || len(points) != tc.want {
				t.Errorf("%d points, %v; want %d", len(points), err, tc.want)
			}
		})
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
