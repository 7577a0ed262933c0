// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/tuning/trialname"
)

// record writes the status if it changed: at once when a condition did, else
// when its time has come, and otherwise it returns how long that is.
func (r *Reconciler) record(ctx context.Context, s situation, v *verdict, now time.Time) (time.Duration, error) {
	e := s.experiment
	status := e.Status.DeepCopy()
	enter(status, v, metav1.NewTime(now))
	urgent := !equality.Semantic.DeepEqual(status.Conditions, e.Status.Conditions)
	pace := r.pace(e.UID)
	wait := pace.status.Add(r.StatusInterval).Sub(now)
	if !urgent && wait > 0 {
		return wait, nil
	}
	o := e.Spec.Objective
	several := o != nil && len(o.AdditionalObjectives) > 0
	var contenders []*v1beta1.Trial
	r.roster.with(e.UID, now, func(g *group) {
		if o != nil {
			s.trials = g.tally(o)
		}
		if several {
			contenders = g.contenders()
		}
		summarize(status, &s.trials, g.lists(keepNames))
	})
	if several && len(contenders) > 0 { // else what was known stays known, as the best does
		status.OptimalTrials = front(o, contenders)
	}
	if equality.Semantic.DeepEqual(status, &e.Status) {
		return 0, nil
	}
	status.LastReconcileTime = &metav1.Time{Time: now}
	if err := reconciling.WriteStatus(ctx, r.client, &r.writes, "experiment", e, &v1beta1.Experiment{Status: *status}); err != nil {
		return 0, err
	}
	pace.status = now
	r.count(e, v)
	return 0, nil
}

// count records in the metrics that an experiment started or ended.
func (r *Reconciler) count(e *v1beta1.Experiment, v *verdict) {
	if !e.Status.Conditions.IsTrue(v1beta1.ConditionCreated) {
		r.Metrics.ExperimentsCreated.WithLabelValues(e.Namespace).Inc()
	}
	switch {
	case v == nil:
	case v.condition == v1beta1.ConditionSucceeded:
		r.Metrics.ExperimentsSucceeded.WithLabelValues(e.Namespace).Inc()
	case v.condition == v1beta1.ConditionFailed:
		r.Metrics.ExperimentsFailed.WithLabelValues(e.Namespace).Inc()
	}
}

// ask raises the number of requested suggestions to want, and creates the
// Suggestion first if there is none. A small request may wait for company;
// then it returns for how long.
func (r *Reconciler) ask(ctx context.Context, s situation, want int32, now time.Time) (time.Duration, error) {
	if want == 0 {
		return 0, nil
	}
	e := s.experiment
	pace := r.pace(e.UID)
	wait := pace.ask.Add(r.AskInterval).Sub(now)
	if few := int(want)-s.asked() < s.parallel()/8; few && wait > 0 {
		return wait, nil
	}
	pace.ask = now
	if s.suggestion == nil {
		return 0, r.createSuggestion(ctx, e, want)
	}
	// The server takes all but the status from this object.
	update := &v1beta1.Suggestion{ObjectMeta: *s.suggestion.ObjectMeta.DeepCopy(), Spec: s.suggestion.Spec}
	update.Spec.Requests = want
	if err := r.client.Update(ctx, update); err != nil {
		return 0, fmt.Errorf("cannot request suggestions for experiment %s/%s: %w", e.Namespace, e.Name, err)
	}
	r.writes.Wrote(s.suggestion.ResourceVersion, update)
	return 0, nil
}

func (r *Reconciler) createSuggestion(ctx context.Context, e *v1beta1.Experiment, requests int32) error {
	suggestion := &v1beta1.Suggestion{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       e.Namespace,
			Name:            e.Name,
			Labels:          e.Labels,
			Annotations:     suggestionAnnotations(e),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind(v1beta1.ExperimentKind))},
		},
		Spec: v1beta1.SuggestionSpec{
			Algorithm:     e.Spec.Algorithm,
			EarlyStopping: e.Spec.EarlyStopping,
			Requests:      requests,
			ResumePolicy:  e.Spec.ResumePolicy,
		},
	}
	err := r.client.Create(ctx, suggestion)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create suggestion %s/%s: %w", e.Namespace, e.Name, err)
	}
	return nil
}

// create makes trials of suggestions that have none, several at once.
func (r *Reconciler) create(ctx context.Context, s situation, places []int, now time.Time) error {
	if len(places) == 0 {
		return nil
	}
	render, err := r.renderer(ctx, s)
	if err != nil {
		return err
	}
	var (
		workers sync.WaitGroup
		errs    = make([]error, len(places))
		free    = make(chan struct{}, r.Creations)
	)
	for i, place := range places {
		free <- struct{}{}
		workers.Go(func() {
			errs[i] = r.createOne(ctx, s, place, render, now)
			<-free
		})
	}
	workers.Wait()
	return worst(errs)
}

// worst joins errors, but for those about a quota where there are others: of
// these one says all.
func worst(errs []error) error {
	var byQuota error
	others := make([]error, 0, len(errs))
	for _, err := range errs {
		if reconciling.ExceedsQuota(err) {
			byQuota = err
		} else {
			others = append(others, err)
		}
	}
	return cmp.Or(errors.Join(others...), byQuota)
}

func (r *Reconciler) createOne(ctx context.Context, s situation, place int, render renderer, now time.Time) error {
	e, status := s.experiment, &s.suggestion.Status
	a := &status.Suggestions[place]
	index, ok := trialname.Index(e.Name, e.UID, a.Name, s.made())
	if !ok { // named by Katib: its list is complete
		index = s.made() - len(status.Suggestions) + place
	}
	run, err := render(a)
	if err != nil {
		return fmt.Errorf("cannot render the template for trial %s/%s: %w", e.Namespace, a.Name, err)
	}
	switch err := r.client.Create(ctx, newTrial(e, a, index, run)); {
	case err == nil:
		r.Metrics.TrialsCreated.WithLabelValues(e.Namespace).Inc()
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("cannot create trial %s/%s: %w", e.Namespace, a.Name, err)
	}
	r.roster.expect(e.UID, a.Name, index, now.Add(expectFor))
	return nil
}
