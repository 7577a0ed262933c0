// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialkind"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// kindOf is the kind of a trial's run object. The error wraps
// trialkind.ErrNotPermitted where it may not have that kind.
func (r *Reconciler) kindOf(ctx context.Context, t *v1beta1.Trial) (schema.GroupVersionKind, error) {
	if t.Spec.RunSpec == nil {
		return schema.GroupVersionKind{}, fmt.Errorf("%w: spec.runSpec is empty", trialkind.ErrNotPermitted)
	}
	kind := t.Spec.RunSpec.GroupVersionKind()
	if r.watch.covers(kind) {
		return kind, nil
	}
	return kind, r.Kinds.Check(ctx, kind)
}

// newRun is an empty run object. Jobs, which are most, have their own type:
// they are encoded faster.
func newRun(kind schema.GroupVersionKind) client.Object {
	if kind == jobKind() {
		return &batchv1.Job{}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// find reads a trial's run object with a reader, nil when there is none.
func find(ctx context.Context, reader client.Reader, t *v1beta1.Trial, kind schema.GroupVersionKind, options ...client.GetOption) (client.Object, error) {
	run := newRun(kind)
	err := reader.Get(ctx, client.ObjectKeyFromObject(t), run, options...)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get %s %s/%s: %w", kind.Kind, t.Namespace, t.Name, err)
	}
	return run, nil
}

// owns reports whether the run object is the trial's own.
func owns(t *v1beta1.Trial, run client.Object) bool { return metav1.IsControlledBy(run, t) }

// evaluate reads from a run object how it went.
func evaluate(t *v1beta1.Trial, run client.Object) (trialtemplate.Outcome, error) {
	if u, ok := run.(*unstructured.Unstructured); ok {
		return trialtemplate.Evaluate(u, t.Spec.SuccessCondition, t.Spec.FailureCondition)
	}
	text, err := json.Marshal(run)
	if err != nil {
		return trialtemplate.Outcome{}, fmt.Errorf("cannot encode run object %s/%s: %w", run.GetNamespace(), run.GetName(), err)
	}
	return trialtemplate.EvaluateJSON(text, t.Spec.SuccessCondition, t.Spec.FailureCondition), nil
}

// build returns the run object to create.
func build(t *v1beta1.Trial, kind schema.GroupVersionKind) (client.Object, error) {
	object, err := trialtemplate.RunObject(t)
	if err != nil {
		return nil, err
	}
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(t, v1beta1.GroupVersion.WithKind(v1beta1.TrialKind))})
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1beta1.LabelTrial] = t.Name // the cache holds run objects by this label
	object.SetLabels(labels)
	if t.Status.Retries > 0 {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1beta1.AnnotationAttempt] = strconv.Itoa(int(t.Status.Retries))
		object.SetAnnotations(annotations)
	}
	run := newRun(kind)
	if _, ok := run.(*unstructured.Unstructured); ok {
		return object, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, run); err != nil {
		return nil, fmt.Errorf("cannot read spec.runSpec as a %s: %w", kind.Kind, err)
	}
	return run, nil
}
