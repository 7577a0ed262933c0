// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// obstacle is what keeps a trial from running for now: once it is removed,
// the trial runs as if it had never existed.
type obstacle struct{ reason, message string }

// hold writes down why a trial does not run, and returns when to retry.
func (r *Reconciler) hold(ctx context.Context, t *v1beta1.Trial, o *obstacle) (time.Duration, error) {
	now := metav1.NewTime(r.Clock.Now())
	before := t.Status.Conditions.Get(v1beta1.ConditionRunning)
	after := t.Status.DeepCopy()
	held(after, o, now)
	if !equality.Semantic.DeepEqual(&t.Status, after) {
		t.Status = *after
		if err := r.write(ctx, t, now.Time); err != nil {
			return 0, err
		}
		if before == nil || before.Reason != o.reason {
			r.Events.Warning(t, o.reason, "%s", o.message)
		}
	}
	return reconciling.QuotaBackoff(now.Sub(after.Conditions.Get(v1beta1.ConditionRunning).LastTransitionTime.Time)), nil
}

// held writes an obstacle into a status.
func held(status *v1beta1.TrialStatus, o *obstacle, now metav1.Time) {
	see(status, now)
	status.Conditions.Set(now, v1beta1.ConditionRunning, corev1.ConditionFalse, o.reason, o.message)
}
