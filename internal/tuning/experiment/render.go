// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// renderer makes the run object of an assignment.
type renderer func(*v1beta1.TrialAssignment) (*unstructured.Unstructured, error)

// templateError says that the experiment's own template does not render. Trying
// again is of no use: the spec cannot be changed.
type templateError struct{ error }

// Unwrap returns the cause.
func (e templateError) Unwrap() error { return e.error }

// renderer loads the experiment's template, from a ConfigMap uncached. An
// invalid one in a ConfigMap fails the experiment before its first trial, since
// it may not have been validated; later the experiment waits for it to be fixed.
func (r *Reconciler) renderer(ctx context.Context, s situation) (renderer, error) {
	e := s.experiment
	if e.Spec.TrialTemplate.External != nil { // programs run the trials
		return func(*v1beta1.TrialAssignment) (*unstructured.Unstructured, error) { return nil, nil }, nil
	}
	inline := e.Spec.TrialTemplate.ConfigMap == nil
	first := s.trials.total() == 0
	template, err := trialtemplate.Load(ctx, e.Namespace, &e.Spec, r.templates)
	switch {
	case err != nil && (inline || errors.Is(err, trialtemplate.ErrForbidden) || first && errors.Is(err, trialtemplate.ErrBroken)):
		return nil, templateError{err}
	case err != nil:
		return nil, err
	case first && !inline:
		if err := template.Validate(&e.Spec).ToAggregate(); err != nil {
			return nil, templateError{err}
		}
	}
	return func(a *v1beta1.TrialAssignment) (*unstructured.Unstructured, error) {
		run, err := template.Render(a.Name, e.Namespace, a.ParameterAssignments)
		if err == nil {
			err = mountCheckpoints(run, e, a)
		}
		if err != nil && inline {
			return nil, templateError{err}
		}
		return run, err
	}, nil
}
