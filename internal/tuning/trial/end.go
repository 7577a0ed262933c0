// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialkind"
	"diwan.dev/diwan/observation"
)

// clean deletes the run object of a trial that ended, unless it is retained.
func (r *Reconciler) clean(ctx context.Context, t *v1beta1.Trial, run client.Object) error {
	if run == nil {
		r.memory.forget(t)
		return nil
	}
	if t.Spec.RetainRun || !owns(t, run) || run.GetDeletionTimestamp() != nil || r.memory.clean(t.UID) {
		return nil
	}
	if err := r.remove(ctx, run, metav1.DeletePropagationBackground); err != nil {
		r.memory.forget(t)
		return err
	}
	r.Events.Normal(t, v1beta1.ReasonJobDeleted, "Job %s has been deleted", run.GetName())
	return nil
}

func (r *Reconciler) remove(ctx context.Context, run client.Object, how metav1.DeletionPropagation) error {
	uid := run.GetUID()
	err := r.client.Delete(ctx, run, client.PropagationPolicy(how), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete run object %s/%s: %w", run.GetNamespace(), run.GetName(), err)
	}
	return nil
}

// finalize lets a deleted trial go, once nothing of it runs and its observation
// is deleted.
func (r *Reconciler) finalize(ctx context.Context, t *v1beta1.Trial) error {
	if !slices.ContainsFunc(t.Finalizers, isOurs) {
		return nil
	}
	if gone, err := r.vacate(ctx, t); err != nil || !gone {
		return err
	}
	if err := r.Store.Delete(ctx, observation.Trial{Namespace: t.Namespace, Name: t.Name}); err != nil {
		return fmt.Errorf("cannot delete the observation of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	before := &v1beta1.Trial{ObjectMeta: *t.ObjectMeta.DeepCopy()}
	after := &v1beta1.Trial{ObjectMeta: *t.ObjectMeta.DeepCopy()}
	after.Finalizers = slices.DeleteFunc(after.Finalizers, isOurs)
	err := r.client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the finalizer of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	r.Stopping.Forget(t)
	r.writes.Forget(t.UID)
	r.memory.forget(t)
	r.began(t) // it waits no more
	return nil
}

// vacate ends what runs of a deleted trial and reports whether that is gone. A
// run object of a kind that the cluster lacks, or that may not be handled, is
// left to the garbage collector.
func (r *Reconciler) vacate(ctx context.Context, t *v1beta1.Trial) (gone bool, err error) {
	kind, err := r.kindOf(ctx, t)
	if errors.Is(err, trialkind.ErrNotPermitted) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if blocked, err := r.watch.ensure(ctx, kind); err != nil || blocked != nil {
		return blocked != nil, err
	}
	return r.stop(ctx, t, kind)
}

// isOurs reports whether a finalizer is one that this reconciler removes.
func isOurs(finalizer string) bool {
	return finalizer == v1beta1.FinalizerCleanMetrics || finalizer == v1beta1.FinalizerPrometheus
}

// stop deletes the trial's run object in the foreground, so that the object
// stays until all that it runs has ended, and reports whether it is gone. The
// cache may not have it yet where the trial was just begun; then the API server
// is asked.
func (r *Reconciler) stop(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind) (gone bool, err error) {
	run, err := find(ctx, r.reader(kind), t, kind, client.UnsafeDisableDeepCopy)
	if err == nil && run == nil && !t.IsCompleted() {
		run, err = find(ctx, r.live, t, kind)
	}
	switch {
	case err != nil:
		return false, err
	case run == nil || !owns(t, run):
		return true, nil
	case run.GetDeletionTimestamp() != nil:
		return false, nil
	}
	return false, r.remove(ctx, run, metav1.DeletePropagationForeground)
}
