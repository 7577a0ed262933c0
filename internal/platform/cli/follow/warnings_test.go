// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIsNews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, kind, why string
		want              bool
	}{
		{"a Pod's troubles are a trial's", "Pod", "FailedMount", true},
		{"a Job whose Pods are refused waits for ever", "Job", "FailedCreate", true},
		{"others are not followed", "Node", "Rebooted", false},
		{"the end of a Job is shown anyway", "Job", "BackoffLimitExceeded", false},
	} {
		if got := Kubernetes().IsNews(&corev1.Event{Reason: c.why, InvolvedObject: corev1.ObjectReference{Kind: c.kind}}); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// TestTextOf says the same trouble of several Pods once.
func TestTextOf(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`Error creating: pods "job-x7k2m" is forbidden`:                                                `R: Error creating: pods "job-…" is forbidden`,
		`Error creating: pods "job-" is forbidden: error looking up service account default/nope`:      `R: Error creating: pods "job-" is forbidden: error looking up service account default/nope`,
		"0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No help.": "R: 0/1 nodes are available: 1 Insufficient cpu",
	} {
		if got := textOf(&corev1.Event{Reason: "R", Message: message}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMade(t *testing.T) {
	t.Parallel()
	job, search := Kind{}, Kind{Search: &Search{Prefix: func(name string) string { return "short" }}}
	for _, c := range []struct {
		reason, thing, name string
		kind                Kind
		want                bool
	}{
		{"a Pod by its own name", "p", "p", job, true},
		{"a trial's", "e-0a1b2c3d-xyz", "e", search, true},
		{"that of a search with a long name", "short-0a1b2c3d-xyz", "long", search, true},
		{"which a job does not shorten", "short-0a1b2c3d-xyz", "long", job, false},
		{"another's", "other", "e", job, false},
		{"one that begins alike", "elder", "e", job, false},
	} {
		if got := c.kind.Made(c.thing, c.name); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
