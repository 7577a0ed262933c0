// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/observation"
)

// disputeRetry is how often to look whether a run object that belongs to an
// earlier trial of this name is gone: the watch may not show it.
const disputeRetry = time.Second

// start creates the run object that the cache does not have.
func (r *Reconciler) start(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind) (time.Duration, error) {
	if t.Status.StartTime != nil {
		if there, err := r.restart(ctx, t, kind); there || err != nil {
			return 0, err
		}
	}
	run, err := build(t, kind)
	if err != nil {
		return 0, r.conclude(ctx, t, nil, reject("%v", err))
	}
	r.memory.of(t.UID, r.Clock.Now())
	err = r.client.Create(ctx, run)
	switch {
	case err == nil:
		r.began(t)
		r.Events.Normal(t, v1beta1.ReasonJobCreated, "Job %s has been created", t.Name)
		return r.RunningDelay, nil
	case apierrors.IsAlreadyExists(err):
		there, err := find(ctx, r.live, t, kind)
		if err != nil || there == nil {
			return r.RunningDelay, err
		}
		if owns(t, there) {
			return r.RunningDelay, r.adopt(ctx, t, there)
		}
		return r.dispute(ctx, t, kind, there)
	case isKindMissing(err): // its definition was removed
		return r.hold(ctx, t, kindMissing(kind))
	case reconciling.Forbidden(err):
		return r.turnedAway(ctx, t, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return 0, r.conclude(ctx, t, nil, reject("cannot create %s %s: %v", kind.Kind, t.Name, err))
	}
	return 0, fmt.Errorf("cannot create %s %s/%s: %w", kind.Kind, t.Namespace, t.Name, err)
}

// isKindMissing reports whether creating an object failed because the cluster
// does not have its kind, rather than its namespace.
func isKindMissing(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind != "namespaces"
}

// restart prepares for another run, where the cache lacks the run object of a
// trial that ran already. It asks the API server; there says that the object
// exists after all. What earlier runs reported is forgotten.
func (r *Reconciler) restart(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind) (there bool, err error) {
	run, err := find(ctx, r.live, t, kind)
	if err == nil && run != nil && owns(t, run) {
		err = r.adopt(ctx, t, run)
	}
	if err != nil || run != nil {
		return run != nil, err
	}
	if err := r.Store.Delete(ctx, observation.Trial{Namespace: t.Namespace, Name: t.Name}); err != nil {
		return false, fmt.Errorf("cannot delete the observation of trial %s/%s, which runs again: %w", t.Namespace, t.Name, err)
	}
	return false, nil
}

// adopt gives a run object that Katib created for the trial the label that the
// cache selects run objects by.
func (r *Reconciler) adopt(ctx context.Context, t *v1beta1.Trial, run client.Object) error {
	if run.GetLabels()[v1beta1.LabelTrial] == t.Name {
		return nil // the cache will have it
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.LabelTrial, t.Name)
	if err := r.client.Patch(ctx, run, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot label run object %s/%s, which Katib created: %w", run.GetNamespace(), run.GetName(), err)
	}
	return nil
}

// dispute handles a run object of the trial's name that is not the trial's. One
// that goes soon is waited for; with any other the trial fails.
func (r *Reconciler) dispute(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind, run client.Object) (time.Duration, error) {
	owner := metav1.GetControllerOf(run)
	leaving := run.GetDeletionTimestamp() != nil ||
		(owner != nil && owner.Kind == v1beta1.TrialKind && owner.Name == t.Name)
	if leaving {
		return disputeRetry, nil
	}
	return 0, r.conclude(ctx, t, nil, reject("a %s named %s exists and does not belong to this trial; delete it and create the trial again", kind.Kind, t.Name))
}
