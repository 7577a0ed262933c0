// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// turnedAway holds a trial whose run object the API server refuses by a rule.
func (r *Reconciler) turnedAway(ctx context.Context, t *v1beta1.Trial, err error) (time.Duration, error) {
	if !reconciling.ExceedsQuota(err) {
		return r.hold(ctx, t, &obstacle{v1beta1.ReasonRunForbidden, reconciling.Message("The API server rejects the run object: " + err.Error())})
	}
	return r.waitForRoom(ctx, t, err.Error())
}

// waitForRoom holds a trial until its namespace's quota has room.
func (r *Reconciler) waitForRoom(ctx context.Context, t *v1beta1.Trial, why string) (time.Duration, error) {
	if _, err := r.watch.quotas(ctx, r.onQuota()); err != nil {
		return 0, err
	}
	r.line.join(client.ObjectKeyFromObject(t))
	return r.hold(ctx, t, &obstacle{v1beta1.ReasonRunQuotaExceeded, reconciling.Message("The namespace's quota is exceeded: " + why)})
}

// began takes a trial out of the line; there may be room for the next as well.
func (r *Reconciler) began(t *v1beta1.Trial) {
	if r.line.leave(client.ObjectKeyFromObject(t)) {
		r.callNext(t.Namespace)
	}
}

// callNext reconciles the trial that has waited longest for room.
func (r *Reconciler) callNext(namespace string) {
	if next, ok := r.line.first(namespace); ok && r.again != nil {
		r.again(reconcile.Request{NamespacedName: next})
	}
}

// onQuota calls the first trial of the line when a quota has room again.
func (r *Reconciler) onQuota() handler.TypedEventHandler[*corev1.ResourceQuota, reconcile.Request] {
	return handler.TypedFuncs[*corev1.ResourceQuota, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.ResourceQuota], _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if reconciling.QuotaFreed(e.ObjectOld, e.ObjectNew) {
				r.callNext(e.ObjectNew.Namespace)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.ResourceQuota], _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.callNext(e.Object.Namespace)
		},
	}
}

// starved returns why a Job has no Pods for lack of quota, "" otherwise. The
// Job's own controller retries.
func (r *Reconciler) starved(ctx context.Context, run client.Object) string {
	job, ok := run.(*batchv1.Job)
	if !ok || job.Spec.Suspend != nil && *job.Spec.Suspend || job.Status.StartTime == nil {
		return ""
	}
	s := &job.Status
	if s.Active+s.Succeeded+s.Failed > 0 || s.Terminating != nil && *s.Terminating > 0 {
		return ""
	}
	if unlimited, err := r.unlimited(ctx, job.Namespace); err != nil || unlimited {
		return "" // the events of a busy namespace are many
	}
	var events corev1.EventList
	err := r.live.List(ctx, &events, client.InNamespace(job.Namespace), client.MatchingFieldsSelector{Selector: fields.Set{
		"involvedObject.uid": string(job.UID), "reason": "FailedCreate",
	}.AsSelector()})
	if err != nil {
		return "" // it is a help, and may not be permitted
	}
	for _, e := range events.Items {
		if reconciling.IsQuotaMessage(e.Message) {
			return e.Message
		}
	}
	return ""
}

// unlimited reports whether a namespace is known to have no quota.
func (r *Reconciler) unlimited(ctx context.Context, namespace string) (bool, error) {
	watched, err := r.watch.quotas(ctx, r.onQuota())
	if err != nil || !watched {
		return false, err
	}
	var quotas corev1.ResourceQuotaList
	if err := r.client.List(ctx, &quotas, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	return len(quotas.Items) == 0, nil
}
