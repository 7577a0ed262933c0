// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// Reconciler moves experiments toward their end. SetupWithManager makes one.
type Reconciler struct {
	Config
	client client.Client // reads come from the cache
	// templates come from the API server: they are few, and a cache would hold every
	// ConfigMap of the cluster.
	templates trialtemplate.Library
	roster    *roster
	writes    reconciling.WriteTracker

	mu     sync.Mutex
	pacing map[types.UID]*pace
}

// pace is when an experiment last performed its rate-limited actions.
type pace struct{ status, ask time.Time }

// expectFor is how long a created trial is believed in before the cache has it.
const expectFor = 5 * time.Second

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	e := &v1beta1.Experiment{}
	if err := r.client.Get(ctx, req.NamespacedName, e); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !e.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.release(ctx, e)
	}
	if r.writes.Stale(e) {
		return reconcile.Result{}, nil
	}
	e.SetDefaults(r.Runs...) // which one lacks that was created while no webhook was asked
	result, err := r.advance(ctx, e)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	case err != nil:
		r.Events.Warning(e, v1beta1.ReasonReconcileError, "Failed to reconcile: %v", err)
	}
	return result, err
}

// advance makes one step.
func (r *Reconciler) advance(ctx context.Context, e *v1beta1.Experiment) (reconcile.Result, error) {
	now := r.Clock.Now()
	s, ready, err := r.look(ctx, e, now)
	if err != nil || !ready {
		return reconcile.Result{}, err
	}
	p := decide(s)
	status, err := r.record(ctx, s, p.verdict, now)
	if err != nil || p.ends() {
		return reconcile.Result{RequeueAfter: status}, err
	}
	if err := r.end(ctx, e, p.end, now); err != nil {
		return reconcile.Result{}, err
	}
	err = r.create(ctx, s, p.create, now)
	broken := templateError{}
	switch {
	case errors.As(err, &broken):
		_, err = r.record(ctx, s, &verdict{v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed,
			"Experiment has failed: " + broken.Error()}, now)
		return reconcile.Result{}, err
	case reconciling.ExceedsQuota(err):
		return r.waitForRoom(ctx, s, err, p.wake)
	case err != nil:
		return reconcile.Result{}, err
	}
	ask, err := r.ask(ctx, s, p.requests, now)
	if reconciling.ExceedsQuota(err) {
		return r.waitForRoom(ctx, s, err, p.wake)
	}
	if err == nil && len(p.create) > 0 && s.lacksRoom() {
		_, err = r.record(ctx, s, runs(), now)
	}
	return reconcile.Result{RequeueAfter: reconciling.Soonest(status, ask, p.wake)}, err
}

// waitForRoom records that the namespace's quota is exceeded, and returns
// when to retry; the end of a trial may trigger that sooner.
func (r *Reconciler) waitForRoom(ctx context.Context, s situation, cause error, wake time.Duration) (reconcile.Result, error) {
	v := &verdict{v1beta1.ConditionRunning, v1beta1.ReasonExperimentQuotaExceeded, reconciling.Message("The namespace's quota is exceeded: " + cause.Error())}
	if _, err := r.record(ctx, s, v, s.now); err != nil {
		return reconcile.Result{}, err // as where the status was written just before: told when it has been
	}
	since := s.now
	if s.lacksRoom() {
		since = s.experiment.Status.Conditions.Get(v1beta1.ConditionRunning).LastUpdateTime.Time
	} else {
		r.Events.Warning(s.experiment, v.reason, "%s", v.message)
	}
	return reconcile.Result{RequeueAfter: reconciling.Soonest(reconciling.QuotaBackoff(s.now.Sub(since)), wake)}, nil
}

// look reads the situation. It is not ready while the cache lacks what this
// reconciler wrote, or holds what belongs to an experiment of the same name
// that is gone; the watch calls again.
func (r *Reconciler) look(ctx context.Context, e *v1beta1.Experiment, now time.Time) (situation, bool, error) {
	s := situation{now: now, experiment: e}
	suggestion := &v1beta1.Suggestion{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(e), suggestion, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		if owner := metav1.GetControllerOf(suggestion); owner == nil {
			return s, false, fmt.Errorf("cannot use suggestion %s/%s: no experiment owns it; delete it", e.Namespace, e.Name)
		} else if owner.UID != e.UID || r.writes.Stale(suggestion) {
			return s, false, nil
		}
		s.suggestion = suggestion
	case !apierrors.IsNotFound(err):
		return s, false, err
	}
	objective := e.Spec.Objective
	if objective == nil {
		objective = &v1beta1.ObjectiveSpec{}
	}
	r.roster.with(e.UID, now, func(g *group) {
		s.trials = g.tally(objective)
		if s.suggestion == nil {
			return
		}
		for i := range s.suggestion.Status.Suggestions {
			if !g.has(s.suggestion.Status.Suggestions[i].Name) {
				s.waiting = append(s.waiting, i)
			}
		}
	})
	return s, true, nil
}

// end deletes the newest active trials.
func (r *Reconciler) end(ctx context.Context, e *v1beta1.Experiment, n int, now time.Time) error {
	if n == 0 {
		return nil
	}
	var newest []*v1beta1.Trial
	r.roster.with(e.UID, now, func(g *group) { newest = g.newestActive(n) })
	for _, t := range newest {
		// A trial that ended meanwhile has another version, and is kept.
		err := r.client.Delete(ctx, t, client.Preconditions{UID: &t.UID, ResourceVersion: &t.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete trial %s/%s: %w", t.Namespace, t.Name, err)
		}
	}
	return nil
}

// pace returns the pace of an experiment.
func (r *Reconciler) pace(uid types.UID) *pace {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pacing[uid] == nil {
		r.pacing[uid] = &pace{}
	}
	return r.pacing[uid]
}

// forget drops the state of a deleted experiment.
func (r *Reconciler) forget(uid types.UID) {
	r.writes.Forget(uid)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pacing, uid)
}

// release lets a deleted experiment go that Katib made: nothing here needs its
// finalizer.
func (r *Reconciler) release(ctx context.Context, e *v1beta1.Experiment) error {
	i := slices.Index(e.Finalizers, v1beta1.FinalizerPrometheus)
	if i < 0 {
		return nil
	}
	before := e.DeepCopy()
	e.Finalizers = slices.Delete(e.Finalizers, i, i+1)
	err := r.client.Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove finalizer %s from experiment %s/%s: %w", v1beta1.FinalizerPrometheus, e.Namespace, e.Name, err)
	}
	return nil
}
