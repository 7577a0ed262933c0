// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/trialtemplate"
)

// renderer makes the run object of an assignment.
type renderer func(*v1beta1.TrialAssignment) (*unstructured.Unstructured, error)

// templateError says that the experiment's own template does not render. Trying
// again is of no use: the spec cannot be changed.
type templateError struct{ error }

// Unwrap returns the cause.
func (e templateError) Unwrap() error { return e.error }

// renderer loads the experiment's template, from a ConfigMap each time anew.
func (r *Reconciler) renderer(ctx context.Context, e *v1beta1.Experiment) (renderer, error) {
	if e.Spec.TrialTemplate.External != nil { // programs run the trials
		return func(*v1beta1.TrialAssignment) (*unstructured.Unstructured, error) { return nil, nil }, nil
	}
	inline := e.Spec.TrialTemplate.ConfigMap == nil
	template, err := trialtemplate.Load(ctx, &e.Spec, r.configMap)
	if err != nil {
		if inline {
			return nil, templateError{err}
		}
		return nil, err
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

// configMap reads a ConfigMap from the API server: templates are few, and a
// cache would hold every ConfigMap of the cluster.
func (r *Reconciler) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	m := &corev1.ConfigMap{}
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, m); err != nil {
		return nil, fmt.Errorf("cannot get ConfigMap %s/%s: %w", namespace, name, err)
	}
	return m.Data, nil
}
