// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/internal/controller/trialname"
)

func TestIsNews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, kind, why string
		want              bool
	}{
		{"a Pod's troubles are a trial's", "Pod", "FailedMount", true},
		{"a trial waits", "Trial", "RunKindMissing", true},
		{"or its experiment", "Experiment", "ExperimentQuotaExceeded", true},
		{"what is tried again at once is none of the user's", "Trial", "ReconcileError", false},
		{"others are not followed", "Node", "Rebooted", false},
	} {
		if got := isNews(&corev1.Event{Reason: c.why, InvolvedObject: corev1.ObjectReference{Kind: c.kind}}); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

func TestBelongs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 12) + "end"
	for _, c := range []struct {
		reason, pod, name string
		want              bool
	}{
		{"a Pod by its own name", "p", "p", true},
		{"a trial's", "e-0a1b2c3d-xyz", "e", true},
		{"that of an experiment with a long name", trialname.Of(long, types.UID("u"), 3) + "-xyz", long, true},
		{"another's", "other", "e", false},
		{"one that begins alike", "elder", "e", false},
	} {
		if got := Belongs(c.pod, c.name); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
