// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// show writes conditions as one line: what is False in brackets.
func show(s *v1.JobStatus) string {
	var words []string
	for _, c := range s.Conditions {
		word := string(c.Type)
		if c.Status != corev1.ConditionTrue {
			word = "(" + word + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestConditions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		set    []v1.JobConditionType
		want   string
	}{
		"Succeeded":  {"The end makes Running False", []v1.JobConditionType{"Created", "Running", "Succeeded"}, "Created (Running) Succeeded"},
		"Restarting": {"Running and Restarting replace each other", []v1.JobConditionType{"Created", "Running", "Restarting"}, "Created Restarting"},
		"Again":      {"And back", []v1.JobConditionType{"Created", "Restarting", "Running"}, "Created Running"},
		"Twice":      {"What holds already stays where it is", []v1.JobConditionType{"Created", "Running", "Created"}, "Created Running"},
		"Ended":      {"A failed job takes no more", []v1.JobConditionType{"Created", "Failed", "Succeeded", "Running"}, "Created Failed"},
		"NotBoth":    {"Nor does one that succeeded, as upstream's may", []v1.JobConditionType{"Created", "Succeeded", "Failed"}, "Created Succeeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s v1.JobStatus
			for _, c := range tc.set {
				s.Set(metav1.Now(), c, corev1.ConditionTrue, "Why", "because")
			}
			if got := show(&s); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestConditionsAlways holds what clients rely on, whatever happens.
func TestConditionsAlways(t *testing.T) {
	t.Parallel()
	types := []v1.JobConditionType{v1.JobCreated, v1.JobRunning, v1.JobRestarting, v1.JobSucceeded, v1.JobSuspended, v1.JobFailed}
	rapid.Check(t, func(rt *rapid.T) {
		var s v1.JobStatus
		now := metav1.NewTime(time.Unix(0, 0))
		for range rapid.IntRange(0, 12).Draw(rt, "steps") {
			now = metav1.NewTime(now.Add(time.Second))
			finished := s.IsFinished()
			before := show(&s)
			s.Set(now, rapid.SampledFrom(types).Draw(rt, "type"), rapid.SampledFrom([]corev1.ConditionStatus{"True", "False"}).Draw(rt, "status"), "Why", "")
			if finished && show(&s) != before {
				rt.Fatalf("a finished job changed from %s to %s", before, show(&s))
			}
		}
		seen := map[v1.JobConditionType]bool{}
		for _, c := range s.Conditions {
			if seen[c.Type] {
				rt.Fatalf("%s is there twice: %s", c.Type, show(&s))
			}
			seen[c.Type] = true
			if c.LastTransitionTime.After(c.LastUpdateTime.Time) {
				rt.Fatalf("%s changed after it was written", c.Type)
			}
		}
		if s.Is(v1.JobSucceeded) && s.Is(v1.JobFailed) || s.IsFinished() && s.Is(v1.JobRunning) || seen[v1.JobRunning] && seen[v1.JobRestarting] {
			rt.Fatalf("contradictory conditions: %s", show(&s))
		}
	})
}
