// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/trialkind"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// Reconciler moves trials toward their end. SetupWithManager makes one.
type Reconciler struct {
	Config
	client client.Client // reads come from the cache
	live   client.Reader // reads come from the API server
	watch  *watches
	writes reconciling.WriteTracker
	memory memory
	line   line
	// again reconciles a trial, once the controller has started.
	again func(reconcile.Request)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	t := &v1beta1.Trial{}
	if err := r.client.Get(ctx, req.NamespacedName, t, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) && r.line.leave(req.NamespacedName) {
			r.callNext(req.Namespace)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.writes.Stale(t) {
		return reconcile.Result{}, nil
	}
	t = t.DeepCopy()
	wait, err := r.advance(ctx, t)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	case err != nil:
		r.Events.Warning(t, v1beta1.ReasonReconcileError, "Failed to reconcile: %v", err)
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// advance makes one step and returns when to make the next, 0 to wait for a
// change.
func (r *Reconciler) advance(ctx context.Context, t *v1beta1.Trial) (time.Duration, error) {
	if !t.DeletionTimestamp.IsZero() {
		return 0, r.finalize(ctx, t)
	}
	if t.Spec.External != nil {
		return r.advanceExternal(ctx, t)
	}
	kind, err := r.kindOf(ctx, t)
	over := t.IsCompleted() && !t.IsStopping()
	switch {
	case errors.Is(err, trialkind.ErrNotPermitted) && over:
		return 0, nil
	case errors.Is(err, trialkind.ErrNotPermitted):
		return 0, r.conclude(ctx, t, nil, reject("%v", err))
	case err != nil:
		return 0, err
	}
	blocked, err := r.watch.ensure(ctx, kind)
	switch {
	case err != nil:
		return 0, err
	case blocked != nil && over:
		return 0, nil
	case blocked != nil:
		return r.keepOut(ctx, t, blocked)
	}
	run, err := find(ctx, r.reader(kind), t, kind, client.UnsafeDisableDeepCopy)
	switch {
	case err != nil:
		return 0, err
	case t.IsStopping():
		return r.wait(ctx, t, kind, run)
	case t.IsCompleted():
		if err := r.Stopping.End(ctx, t); err != nil {
			return 0, err
		}
		return 0, r.clean(ctx, t, run)
	case run != nil && !owns(t, run):
		return r.dispute(ctx, t, kind, run)
	}
	return r.move(ctx, t, kind, run)
}

// reader is where run objects of a kind are read from.
func (r *Reconciler) reader(kind schema.GroupVersionKind) client.Reader {
	if kind == jobKind() {
		return r.client
	}
	return r.watch.cache
}

// follow looks how a run object goes that has not ended.
func (r *Reconciler) follow(ctx context.Context, t *v1beta1.Trial, run client.Object) (time.Duration, error) {
	decision, again, err := r.look(ctx, t)
	switch {
	case err != nil:
		return 0, err
	case decision.Stop():
		return 0, r.stopEarly(ctx, t, run, decision)
	}
	wait, err := r.running(ctx, t, run)
	return reconciling.Soonest(wait, again), err
}

// judge concludes a trial whose run object has ended.
func (r *Reconciler) judge(ctx context.Context, t *v1beta1.Trial, run client.Object, outcome trialtemplate.Outcome) error {
	seen, err := observe(ctx, r.Store, t)
	if err != nil {
		return r.unreadable(ctx, t, run.GetCreationTimestamp(), err)
	}
	t.Status.Observation = seen
	return r.conclude(ctx, t, run, judge(outcome, t.HasObjective()))
}

// readingShare bounds the time for which a trial's reports are read, to one part
// in so many.
const readingShare = 50

// running updates the status for a run object that is running: first that it
// runs, then its metrics so far.
func (r *Reconciler) running(ctx context.Context, t *v1beta1.Trial, run client.Object) (time.Duration, error) {
	now := r.Clock.Now()
	m := r.memory.of(t.UID, now)
	if wait := m.since.Add(r.RunningDelay).Sub(now); wait > 0 && !t.Status.Conditions.IsTrue(v1beta1.ConditionRunning) {
		return wait, nil
	}
	if why := r.starved(ctx, run); why != "" {
		return r.waitForRoom(ctx, t, why)
	}
	r.began(t)
	before := t.Status.DeepCopy()
	begin(&t.Status, run.GetCreationTimestamp(), metav1.NewTime(now))
	wait := m.observe.Sub(now)
	if wait <= 0 {
		seen, err := observe(ctx, r.Store, t)
		if err != nil {
			return 0, r.unreadable(ctx, t, run.GetCreationTimestamp(), err)
		}
		t.Status.Observation = seen
		wait = max(r.ObservationInterval, readingShare*r.Clock.Since(now))
		r.memory.observeAt(t.UID, now.Add(wait))
	}
	if equality.Semantic.DeepEqual(before, &t.Status) {
		return wait, nil
	}
	if !before.Conditions.IsTrue(v1beta1.ConditionRunning) {
		r.Events.Normal(t, v1beta1.ReasonJobRunning, "Job %s is running", run.GetName())
	}
	return wait, r.write(ctx, t, now)
}

// unreadable shows that the observation store cannot be read, and returns the
// error, so that it is retried.
func (r *Reconciler) unreadable(ctx context.Context, t *v1beta1.Trial, since metav1.Time, cause error) error {
	if c := t.Status.Conditions.Get(v1beta1.ConditionRunning); c != nil && c.Reason == reasonObservationUnreadable {
		return cause
	}
	now := metav1.NewTime(r.Clock.Now())
	begin(&t.Status, since, now)
	t.Status.Conditions.Set(now, v1beta1.ConditionRunning, corev1.ConditionTrue, reasonObservationUnreadable,
		"The trial's metrics cannot be read yet: "+cause.Error())
	if err := r.write(ctx, t, now.Time); err != nil {
		return err
	}
	return cause
}

// conclude writes how the trial ended and lets its run object go.
func (r *Reconciler) conclude(ctx context.Context, t *v1beta1.Trial, run client.Object, v verdict) error {
	now := r.Clock.Now()
	since := metav1.NewTime(now)
	if run != nil {
		since = run.GetCreationTimestamp()
	}
	t.Status.ResourceUsage = r.usage(ctx, t)
	begin(&t.Status, since, metav1.NewTime(now))
	finish(&t.Status, v, metav1.NewTime(now))
	if err := r.write(ctx, t, now); err != nil {
		return err
	}
	r.memory.forget(t)
	r.began(t)
	r.announce(t, v)
	return r.clean(ctx, t, run)
}

// announce records how a trial ended in events and metrics.
func (r *Reconciler) announce(t *v1beta1.Trial, v verdict) {
	switch v.condition {
	case v1beta1.ConditionSucceeded:
		r.Events.Normal(t, v1beta1.ReasonJobSucceeded, "Job %s has succeeded", t.Name)
		r.Metrics.TrialsSucceeded.WithLabelValues(t.Namespace).Inc()
	case v1beta1.ConditionFailed:
		r.Events.Normal(t, v1beta1.ReasonJobFailed, "Job %s has failed. %s", t.Name, v.message)
		r.Metrics.TrialsFailed.WithLabelValues(t.Namespace).Inc()
	case v1beta1.ConditionEarlyStopped, v1beta1.ConditionKilled:
		r.Events.Normal(t, v.reason, "%s", v.message)
	case v1beta1.ConditionMetricsUnavailable:
		r.Events.Warning(t, v1beta1.ReasonMetricsUnavailable, "Metrics are not available for Job %s", t.Name)
		r.Metrics.TrialsMetricsUnavailable.WithLabelValues(t.Namespace).Inc()
	}
}

// write writes the status.
func (r *Reconciler) write(ctx context.Context, t *v1beta1.Trial, now time.Time) error {
	t.Status.LastReconcileTime = &metav1.Time{Time: now}
	return reconciling.WriteStatus(ctx, r.client, &r.writes, "trial", t, &v1beta1.Trial{Status: t.Status})
}
