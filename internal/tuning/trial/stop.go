// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/observation"
)

// look decides whether to stop a running trial early, and returns when to check
// again, 0 for a trial without early stopping. A report is checked when the
// store announces it, and otherwise within the interval; less often if reading
// is slow.
func (r *Reconciler) look(ctx context.Context, t *v1beta1.Trial) (decision earlystopping.Decision, again time.Duration, err error) {
	e, err := r.experimentOf(ctx, t)
	if e != nil && e.Spec.EarlyStopping == nil {
		e = nil
	}
	if err != nil || t.Spec.Objective == nil || (len(t.Spec.EarlyStoppingRules) == 0 && e == nil) {
		return decision, 0, err
	}
	now := r.Clock.Now()
	if wait := r.memory.of(t.UID, now).look.Sub(now); wait > 0 {
		return decision, wait, nil
	}
	points, err := r.Store.Points(ctx, observation.Trial{Namespace: t.Namespace, Name: t.Name}, observation.Query{})
	if err != nil {
		return decision, 0, fmt.Errorf("cannot read the observation of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	decision = earlystopping.Met(t.Spec.EarlyStoppingRules, t.Spec.Objective, points)
	if !decision.Stop() && e != nil {
		decision, err = r.Stopping.Judge(ctx, e, t, earlystopping.Values(points, t.Spec.Objective.ObjectiveMetricName))
	}
	r.memory.lookAt(t, now.Add(readingShare*r.Clock.Since(now)))
	return decision, r.ObservationInterval, err
}

// experimentOf returns the experiment of a trial, nil where it has none.
func (r *Reconciler) experimentOf(ctx context.Context, t *v1beta1.Trial) (*v1beta1.Experiment, error) {
	owner := metav1.GetControllerOf(t)
	if owner == nil || owner.Kind != v1beta1.ExperimentKind {
		return nil, nil
	}
	e := &v1beta1.Experiment{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: owner.Name}, e, client.UnsafeDisableDeepCopy)
	if err != nil || e.UID != owner.UID {
		return nil, client.IgnoreNotFound(err)
	}
	return e, nil
}

// stopEarly begins to end a trial that is not worth continuing.
func (r *Reconciler) stopEarly(ctx context.Context, t *v1beta1.Trial, run client.Object, d earlystopping.Decision) error {
	return r.end(ctx, t, run, func(now metav1.Time) { t.Status.Stop(now, d.Step, d.Why) })
}

// end records that the trial is to be stopped, by decide, with its metrics so
// far, and starts terminating its run, if any. From then on the trial ends as
// decided, whatever its run's outcome.
func (r *Reconciler) end(ctx context.Context, t *v1beta1.Trial, run client.Object, decide func(now metav1.Time)) error {
	now := metav1.NewTime(r.Clock.Now())
	if run != nil {
		seen, err := observe(ctx, r.Store, t)
		if err != nil {
			return err
		}
		begin(&t.Status, run.GetCreationTimestamp(), now)
		t.Status.Observation = seen
	}
	decide(now)
	if err := r.write(ctx, t, now.Time); err != nil || run == nil {
		return err
	}
	_, err := r.halt(ctx, t, t.Spec.RunSpec.GroupVersionKind(), run)
	return err
}

// wait ends the run of a trial that is being stopped, and when all of it has
// ended, writes the trial's end. What it reported last counts as well.
func (r *Reconciler) wait(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind, run client.Object) (time.Duration, error) {
	ended, err := r.halt(ctx, t, kind, run)
	if err != nil || !ended {
		return haltRetry, err // the watch of run objects may call sooner
	}
	seen, err := observe(ctx, r.Store, t)
	if err != nil {
		return 0, r.unreadable(ctx, t, metav1.NewTime(r.Clock.Now()), err)
	}
	if seen != nil { // else what was known when it was decided
		t.Status.Observation = seen
	}
	return 0, r.conclude(ctx, t, run, stopped(t))
}

// stopped is the verdict on a trial that was stopped.
func stopped(t *v1beta1.Trial) verdict {
	v := verdict{v1beta1.ConditionEarlyStopped, v1beta1.ReasonTrialEarlyStopped, "Trial is early stopped"}
	c := t.Stopping()
	if c == nil { // Katib's collector decided it
		return v
	}
	switch c.Type {
	case v1beta1.ConditionKilled:
		v = verdict{v1beta1.ConditionKilled, v1beta1.ReasonTrialKilled, "Trial is killed"}
	case v1beta1.ConditionFailed:
		v = verdict{v1beta1.ConditionFailed, v1beta1.ReasonTrialTimeLimitExceeded, "Trial has failed"}
	}
	if c.Message != "" {
		v.message += ": " + c.Message
	}
	return v
}
