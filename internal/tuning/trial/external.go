// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/lease"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
	"diwan.dev/diwan/observation"
)

// advanceExternal makes one step with a trial that a program runs, whose lease
// stands where others have a run object.
func (r *Reconciler) advanceExternal(ctx context.Context, t *v1beta1.Trial) (time.Duration, error) {
	leased := t.Status.Lease != nil && t.Status.Lease.ID != ""
	left, err := r.boundExternal(ctx, t, leased)
	if err != nil || left < 0 {
		return 0, err
	}
	switch {
	case t.IsCompleted() && !t.IsStopping():
		r.memory.forget(t)
		return 0, r.Stopping.End(ctx, t)
	case !leased && t.IsStopping():
		return 0, r.concludeExternal(ctx, t)
	case !leased:
		return 0, nil // the watch says when it is taken
	case t.Status.Lease.Outcome != "":
		return 0, r.concludeExternal(ctx, t)
	}
	wait := lease.Overdue(t, r.Clock.Now())
	switch {
	case wait > 0 && t.IsStopping():
		return wait, nil // its program has yet to hear of it
	case wait > 0:
		again, err := r.followExternal(ctx, t)
		return reconciling.Soonest(wait, again, left), err
	case t.IsStopping():
		return 0, r.concludeExternal(ctx, t)
	}
	return 0, r.release(ctx, t)
}

// boundExternal stops a trial whose experiment has ended or whose program takes
// too long, and returns the remaining time, 0 if unlimited, negative if it was
// stopped. Its program learns this when it reports.
func (r *Reconciler) boundExternal(ctx context.Context, t *v1beta1.Trial, leased bool) (time.Duration, error) {
	if t.IsCompleted() || t.IsStopping() || leased && t.Status.Lease.Outcome != "" {
		return 0, nil
	}
	e, err := r.experimentOf(ctx, t)
	if err != nil {
		return 0, err
	}
	s := situation{now: r.Clock.Now(), limit: timeLimit(t), run: &runState{outcome: trialtemplate.Running}}
	if leased {
		s.run.started = taken(t).CreationTimestamp.Time
	}
	var why string
	s.order, why = orderOf(e)
	step, left := decide(s)
	switch step {
	case stepKill:
		t.Status.StopAs(metav1.NewTime(s.now), v1beta1.ConditionKilled, why)
	case stepExpire:
		t.Status.StopAs(metav1.NewTime(s.now), v1beta1.ConditionFailed, tooLong(t))
	default: // a program cannot be suspended
		return left, nil
	}
	return -1, r.write(ctx, t, s.now)
}

// taken stands for the run object of a trial: it began when the trial was
// taken.
func taken(t *v1beta1.Trial) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.Namespace, o.Name = t.Namespace, t.Name
	if t.Status.Lease != nil && t.Status.Lease.AcquireTime != nil {
		o.CreationTimestamp = metav1.NewTime(t.Status.Lease.AcquireTime.Time)
	}
	return o
}

// followExternal updates the progress of a trial, and stops one that is not worth
// continuing.
func (r *Reconciler) followExternal(ctx context.Context, t *v1beta1.Trial) (time.Duration, error) {
	decision, again, err := r.look(ctx, t)
	if err != nil {
		return 0, err
	}
	if !decision.Stop() {
		wait, err := r.running(ctx, t, taken(t))
		return reconciling.Soonest(wait, again), err
	}
	now := metav1.NewTime(r.Clock.Now())
	begin(&t.Status, taken(t).CreationTimestamp, now)
	t.Status.Stop(now, decision.Step, decision.Why)
	return 0, r.write(ctx, t, now.Time) // its next report is answered with it
}

// concludeExternal ends a trial whose program said how it went, or was told to
// stop.
func (r *Reconciler) concludeExternal(ctx context.Context, t *v1beta1.Trial) error {
	seen, err := observe(ctx, r.Store, t)
	if err != nil {
		return r.unreadable(ctx, t, taken(t).CreationTimestamp, err)
	}
	if seen != nil {
		t.Status.Observation = seen
	}
	if t.IsStopping() {
		return r.conclude(ctx, t, taken(t), stopped(t))
	}
	outcome := trialtemplate.Outcome{State: trialtemplate.Succeeded}
	if t.Status.Lease.Outcome == v1beta1.LeaseFailed {
		if t.Status.Retries < t.Spec.MaxRetryCount && t.Status.Lease.Attempt < t.Spec.External.Attempts() {
			return r.giveBack(ctx, t, v1beta1.ReasonTrialRetrying, 1, fmt.Sprintf("Program %q could not run the trial; another will: %s", t.Status.Lease.Worker, t.Status.Lease.Message))
		}
		outcome.State = trialtemplate.Failed
	}
	v := judge(outcome, t.HasObjective())
	if t.Status.Lease.Message != "" {
		v.message += ": " + t.Status.Lease.Message
	}
	return r.conclude(ctx, t, taken(t), v)
}

// release gives a trial back whose program says nothing any more; when that
// happened too often, the trial has failed.
func (r *Reconciler) release(ctx context.Context, t *v1beta1.Trial) error {
	worker, attempt := t.Status.Lease.Worker, t.Status.Lease.Attempt
	if attempt < t.Spec.External.Attempts() {
		return r.giveBack(ctx, t, reasonLeaseExpired, 0, fmt.Sprintf("The lease of program %q expired: the trial goes to another", worker))
	}
	seen, err := observe(ctx, r.Store, t)
	if err != nil {
		return r.unreadable(ctx, t, taken(t).CreationTimestamp, err)
	}
	t.Status.Observation = seen
	return r.conclude(ctx, t, taken(t), reject("it was handed out %d times, and the last program, %q, let its lease expire", attempt, worker))
}

// giveBack lets another program take a trial, and counts retries. What the last
// one reported is forgotten: the next starts over.
func (r *Reconciler) giveBack(ctx context.Context, t *v1beta1.Trial, reason string, retries int32, why string) error {
	// The cache may not show yet that the program has spoken in time.
	current := &v1beta1.Trial{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(t), current); err != nil {
		return client.IgnoreNotFound(err)
	}
	if current.ResourceVersion != t.ResourceVersion {
		return nil // the watch calls again
	}
	if err := r.Store.Delete(ctx, observation.Trial{Namespace: t.Namespace, Name: t.Name}); err != nil {
		return fmt.Errorf("cannot delete the observation of trial %s/%s, which is released: %w", t.Namespace, t.Name, err)
	}
	now := r.Clock.Now()
	lease.Release(t)
	t.Status.Retries += retries
	t.Status.Observation = nil
	t.Status.Conditions.Set(metav1.NewTime(now), v1beta1.ConditionRunning, corev1.ConditionFalse, reason, reconciling.Message(why))
	if err := r.write(ctx, t, now); err != nil {
		return err
	}
	r.memory.forget(t)
	r.Events.Warning(t, reason, "%s", why)
	return nil
}

// reasonLeaseExpired is the reason of the condition Running, with the status False,
// of a trial whose program went silent and that waits for another.
const reasonLeaseExpired = "TrialLeaseExpired"
