// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// move makes the next step of a trial that has not ended. run is nil where there
// is none.
func (r *Reconciler) move(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind, run client.Object) (time.Duration, error) {
	e, err := r.experimentOf(ctx, t)
	if err != nil {
		return 0, err
	}
	s, outcome, err := r.read(t, run)
	if err != nil {
		return 0, err
	}
	var why string
	s.order, why = orderOf(e)
	step, wait := decide(s)
	again, err := time.Duration(0), error(nil)
	switch step {
	case stepStart:
		return r.start(ctx, t, kind)
	case stepFollow:
		again, err = r.follow(ctx, t, run)
	case stepJudge:
		err = r.judge(ctx, t, run, outcome)
	case stepRetry:
		err = r.retry(ctx, t, run, outcome)
	case stepClear:
		err = r.remove(ctx, run, metav1.DeletePropagationForeground)
	case stepKill:
		err = r.end(ctx, t, run, func(now metav1.Time) { t.Status.StopAs(now, v1beta1.ConditionKilled, why) })
	case stepExpire:
		err = r.end(ctx, t, run, func(now metav1.Time) { t.Status.StopAs(now, v1beta1.ConditionFailed, tooLong(t)) })
	case stepSuspend:
		again, err = r.suspend(ctx, t, kind, run)
	case stepResume:
		err = r.setStopField(ctx, run, kind, stopFields[kind.GroupKind()], resumeRun)
	}
	return reconciling.Soonest(wait, again), err
}

// read is the situation of a trial, but for its experiment's order.
func (r *Reconciler) read(t *v1beta1.Trial, run client.Object) (situation, trialtemplate.Outcome, error) {
	s := situation{now: r.Clock.Now(), limit: timeLimit(t), failures: int(t.Status.Retries), retries: int(t.Spec.MaxRetryCount)}
	running := t.Status.Conditions.Get(v1beta1.ConditionRunning)
	if running != nil && running.Reason == v1beta1.ReasonTrialRetrying {
		s.failed = running.LastUpdateTime.Time
	}
	if run == nil {
		return s, trialtemplate.Outcome{}, nil
	}
	outcome, err := evaluate(t, run)
	if err != nil {
		return s, outcome, err
	}
	attempt, _ := strconv.Atoi(run.GetAnnotations()[v1beta1.AnnotationAttempt]) // without one it is the first
	s.run = &runState{
		outcome:   outcome.State,
		leaving:   run.GetDeletionTimestamp() != nil,
		attempt:   attempt,
		suspended: run.GetAnnotations()[v1beta1.AnnotationSuspended] != "",
		started:   started(run, running),
	}
	return s, outcome, nil
}

// timeLimit is how long a run of a trial may take, 0 for no bound.
func timeLimit(t *v1beta1.Trial) time.Duration {
	if t.Spec.TimeLimitSeconds == nil {
		return 0
	}
	return time.Duration(*t.Spec.TimeLimitSeconds) * time.Second
}

// tooLong says why a trial is stopped whose run took longer than that.
func tooLong(t *v1beta1.Trial) string {
	return fmt.Sprintf("its run took longer than its time limit of %s", timeLimit(t))
}

// started returns when a run object started working, zero if it has not. Jobs
// record it; for others it is when they were created, or when the trial was
// retried.
func started(run client.Object, running *v1beta1.Condition) time.Time {
	if job, ok := run.(*batchv1.Job); ok {
		if job.Status.StartTime == nil {
			return time.Time{}
		}
		return job.Status.StartTime.Time
	}
	since := run.GetCreationTimestamp().Time
	if running != nil && running.Status == corev1.ConditionTrue && running.LastTransitionTime.After(since) {
		since = running.LastTransitionTime.Time
	}
	return since
}

// retry records that a run failed and is to be retried.
func (r *Reconciler) retry(ctx context.Context, t *v1beta1.Trial, run client.Object, outcome trialtemplate.Outcome) error {
	now := metav1.NewTime(r.Clock.Now())
	begin(&t.Status, run.GetCreationTimestamp(), now)
	t.Status.Retries++
	t.Status.Observation = nil
	message := fmt.Sprintf("Run %d of at most %d failed; retrying", t.Status.Retries, t.Spec.MaxRetryCount+1)
	for _, text := range []string{outcome.Reason, outcome.Message} {
		if text != "" {
			message += ": " + text
		}
	}
	t.Status.Conditions.Remove(v1beta1.ConditionRunning)
	t.Status.Conditions.Set(now, v1beta1.ConditionRunning, corev1.ConditionFalse, v1beta1.ReasonTrialRetrying, reconciling.Message(message))
	if err := r.write(ctx, t, now.Time); err != nil {
		return err
	}
	r.Events.Warning(t, v1beta1.ReasonTrialRetrying, "%s", message)
	return nil
}

// killed is the verdict on a trial that its experiment stopped.
func killed(why string) verdict {
	return verdict{v1beta1.ConditionKilled, v1beta1.ReasonTrialKilled, "Trial is killed: " + why}
}

// keepOut deals with a trial whose run object cannot be handled for now.
func (r *Reconciler) keepOut(ctx context.Context, t *v1beta1.Trial, o *obstacle) (time.Duration, error) {
	e, err := r.experimentOf(ctx, t)
	if err != nil {
		return 0, err
	}
	if order, why := orderOf(e); order == kill && !t.IsStopping() {
		return 0, r.conclude(ctx, t, nil, killed(why))
	}
	return r.hold(ctx, t, o)
}

// suspend ends a run's Pods for as long as the experiment is suspended. A run
// object of a kind that cannot be suspended is deleted, and made again.
func (r *Reconciler) suspend(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind, run client.Object) (time.Duration, error) {
	if run != nil {
		field := stopFields[kind.GroupKind()]
		switch suspended := run.GetAnnotations()[v1beta1.AnnotationSuspended] != ""; {
		case !field.resumable():
			if err := r.remove(ctx, run, metav1.DeletePropagationForeground); err != nil {
				return 0, err
			}
		case !suspended && !field.isSet(run):
			if err := r.setStopField(ctx, run, kind, field, suspendRun); err != nil {
				return 0, err
			}
		}
		if t.Status.StartTime == nil {
			since := run.GetCreationTimestamp()
			t.Status.StartTime = &since
		}
	}
	_, err := r.hold(ctx, t, &obstacle{v1beta1.ReasonTrialSuspended, "The experiment is suspended"})
	return 0, err // the watch of experiments calls again
}
