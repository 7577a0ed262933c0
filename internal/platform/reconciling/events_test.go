// SPDX-License-Identifier: Apache-2.0

package reconciling_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

func TestNormalEventsHaveABudget(t *testing.T) {
	t.Parallel()
	recorder := events.NewFakeRecorder(10_000)
	e := reconciling.NewEvents(recorder)
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
