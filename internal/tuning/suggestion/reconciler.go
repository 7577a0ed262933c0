// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/platform/tracing"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/optimize"
)

// Reconciler answers requests for suggestions. SetupWithManager makes one.
type Reconciler struct {
	Config
	client client.Client // reads come from the cache
	live   client.Reader // reads come from the API server
	writes reconciling.WriteTracker

	mu       sync.Mutex
	sessions map[types.UID]*session
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := &v1beta1.Suggestion{}
	if err := r.client.Get(ctx, req.NamespacedName, s, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() || r.writes.Stale(s) {
		return reconcile.Result{}, nil
	}
	e := &v1beta1.Experiment{}
	if err := r.client.Get(ctx, req.NamespacedName, e, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(s, e) {
		return reconcile.Result{}, nil // it belongs to an experiment that is gone, and goes too
	}
	err := r.advance(ctx, e, s)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	case err != nil:
		r.Events.Warning(s, v1beta1.ReasonReconcileError, "Failed to reconcile: %v", err)
	}
	return reconcile.Result{}, err
}

// advance makes one step. Neither e nor s may be changed.
func (r *Reconciler) advance(ctx context.Context, e *v1beta1.Experiment, s *v1beta1.Suggestion) error {
	if e.IsCompleted() {
		r.Stopping.Drop(e.UID)
	}
	now := metav1.NewTime(r.Clock.Now())
	next := &v1beta1.Suggestion{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		Labels: s.Labels, Annotations: s.Annotations,
	}}
	s.Status.DeepCopyInto(&next.Status)
	var later unanswered
	switch decide(e, s) {
	case rest:
		if s.IsCompleted() {
			return r.withdraw(ctx, s)
		}
		return nil
	case retire:
		if err := r.withdraw(ctx, s); err != nil {
			return err
		}
		r.forget(s.UID)
		complete(&next.Status, v1beta1.ConditionSucceeded, reasonExperimentCompleted, retired(e.Spec.ResumePolicy), now)
	case suggest:
		prepare(&next.Status, outside(s.Spec.Algorithm, s.Spec.EarlyStopping), now)
		next.Spec = s.Spec
		err := r.suggest(ctx, e, next, ready(s), now)
		if err != nil && !errors.As(err, &later) {
			return err
		}
	}
	if equality.Semantic.DeepEqual(&s.Status, &next.Status) {
		return later.error
	}
	next.Status.LastReconcileTime = &now
	if err := r.client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("cannot write the status of suggestion %s/%s: %w", s.Namespace, s.Name, err)
	}
	r.writes.Wrote(s.ResourceVersion, next)
	return later.error
}

// suggest brings the status of s up to what is requested. ready reports
// whether it already was.
func (r *Reconciler) suggest(ctx context.Context, e *v1beta1.Experiment, s *v1beta1.Suggestion, ready bool, now metav1.Time) error {
	if outside(s.Spec.Algorithm, s.Spec.EarlyStopping) {
		return r.consult(ctx, e, s, ready, now)
	}
	if err := r.withdraw(ctx, s); err != nil {
		return err
	}
	rules, err := r.Stopping.Fixed(ctx, e)
	if err != nil {
		return err
	}
	return r.extend(ctx, e, s, rules, now)
}

// extend makes the missing suggestions with the library, for trials with the
// given early stopping rules.
func (r *Reconciler) extend(ctx context.Context, e *v1beta1.Experiment, s *v1beta1.Suggestion, rules []v1beta1.EarlyStoppingRule, now metav1.Time) error {
	if s.Spec.Algorithm != nil && len(s.Status.AlgorithmSettings) == 0 {
		s.Status.AlgorithmSettings = seedFor(e.UID, s.Spec.Algorithm.AlgorithmName, searchspace.Settings(s.Spec.Algorithm.AlgorithmSettings))
	}
	trial := r.trials(ctx, s.Namespace)
	x, err := r.session(ctx, e, s, trial)
	if unread := (readError{}); errors.As(err, &unread) {
		return err
	}
	if err != nil {
		complete(&s.Status, v1beta1.ConditionFailed, v1beta1.ReasonSuggestionFailed, fmt.Sprintf("Validation failed: %v", err), now)
		return nil
	}
	if s.Status.SuggestionCount == 0 {
		if err := r.claimCheckpoints(ctx, s); err != nil {
			return err
		}
	}
	if err := x.learn(trial); err != nil {
		return err
	}
	searching, end := tracing.Start(ctx, "search", attribute.Int("suggestions", int(s.Spec.Requests-s.Status.SuggestionCount)))
	err = x.extend(searching, &s.Status, s.Spec.Requests, rules)
	end(err)
	switch {
	case errors.Is(err, optimize.ErrExhausted):
		complete(&s.Status, v1beta1.ConditionSucceeded, ReasonEndReached,
			fmt.Sprintf("The algorithm has no more suggestions after %d: %v", s.Status.SuggestionCount, err), now)
	case err != nil:
		return fmt.Errorf("cannot make suggestion %d of %s/%s: %w", s.Status.SuggestionCount, s.Namespace, s.Name, err)
	}
	r.prune(ctx, s, x.given)
	return nil
}

// prune limits the list of suggestions; it keeps those for which needed is
// true.
func (r *Reconciler) prune(ctx context.Context, s *v1beta1.Suggestion, needed func(name string) bool) {
	trial := r.trials(ctx, s.Namespace)
	s.Status.Suggestions = prune(s.Status.Suggestions, r.Keep, func(name string) bool {
		t := trial(name)
		return t != nil && t.IsCompleted() && !needed(name)
	})
}

// prune drops all but the newest keep assignments and those whose trial has not
// ended.
func prune(list []v1beta1.TrialAssignment, keep int, ended func(name string) bool) []v1beta1.TrialAssignment {
	kept := list[:0]
	for i := range list {
		if i >= len(list)-keep || !ended(list[i].Name) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// trials looks trials up in the cache. They must not be changed.
func (r *Reconciler) trials(ctx context.Context, namespace string) trialOf {
	return func(name string) *v1beta1.Trial {
		t := &v1beta1.Trial{}
		if r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, t, client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		return t
	}
}

// session returns the session that continues from s's count, a new one if the
// one in memory does not.
func (r *Reconciler) session(ctx context.Context, e *v1beta1.Experiment, s *v1beta1.Suggestion, trial trialOf) (*session, error) {
	r.mu.Lock()
	x := r.sessions[s.UID]
	r.mu.Unlock()
	if x != nil && x.continues(int(s.Status.SuggestionCount)) {
		return x, nil
	}
	sources, err := r.sources(ctx, e, s.Status.SuggestionCount > 0)
	if err != nil {
		return nil, err
	}
	if x, err = resume(e, s, trial, sources); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions == nil {
		r.sessions = map[types.UID]*session{}
	}
	r.sessions[s.UID] = x
	return x, nil
}

func (r *Reconciler) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, uid)
}
