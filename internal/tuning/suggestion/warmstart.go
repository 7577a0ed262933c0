// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/optimize"
)

// readError says that something could not be read now.
type readError struct{ error }

// Unwrap returns the cause.
func (e readError) Unwrap() error { return e.error }

// sources returns the histories of the earlier experiments that an experiment
// learns from. A missing experiment is an error for a new search; a running
// search continues without it.
func (r *Reconciler) sources(ctx context.Context, e *v1beta1.Experiment, begun bool) ([]*optimize.History, error) {
	if e.Spec.WarmStart == nil {
		return nil, nil
	}
	path := field.NewPath("spec", "warmStart", "experiments")
	var histories []*optimize.History
	for i, name := range e.Spec.WarmStart.Experiments {
		source := &v1beta1.Experiment{}
		err := r.client.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: name}, source, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err) && begun:
			continue
		case apierrors.IsNotFound(err), err == nil && source.UID == e.UID:
			return nil, field.NotFound(path.Index(i), name)
		case err != nil:
			return nil, readError{fmt.Errorf("cannot get experiment %s/%s: %w", e.Namespace, name, err)}
		}
		trials := &v1beta1.TrialList{}
		if err := r.client.List(ctx, trials, client.InNamespace(e.Namespace), client.MatchingLabels{v1beta1.LabelExperiment: name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, readError{fmt.Errorf("cannot list the trials of experiment %s/%s: %w", e.Namespace, name, err)}
		}
		history, err := historyOf(source, trials.Items)
		if err != nil {
			return nil, field.Invalid(path.Index(i), name, err.Error())
		}
		histories = append(histories, history)
	}
	return histories, nil
}

// historyOf returns an experiment's results from those of some trials that
// are its own and have ended, ordered by name, so that it is deterministic.
func historyOf(e *v1beta1.Experiment, trials []v1beta1.Trial) (*optimize.History, error) {
	space, err := searchspace.Of(&e.Spec)
	if err != nil {
		return nil, err
	}
	own := make([]*v1beta1.Trial, 0, len(trials))
	for i := range trials {
		if metav1.IsControlledBy(&trials[i], e) && trials[i].IsCompleted() {
			own = append(own, &trials[i])
		}
	}
	slices.SortFunc(own, func(a, b *v1beta1.Trial) int { return cmp.Compare(a.Name, b.Name) })
	history := optimize.NewHistory(space, searchspace.Directions(e.Spec.Objective)...)
	for _, t := range own {
		point, err := searchspace.Point(space, t.Spec.ParameterAssignments)
		if err != nil {
			continue // Katib made it, outside of the space
		}
		if err := history.Tell(history.Add(point), outcome(t)); err != nil {
			return nil, err
		}
	}
	return history, nil
}
