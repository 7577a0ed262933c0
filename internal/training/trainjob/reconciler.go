// SPDX-License-Identifier: Apache-2.0

package trainjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// Reconciler moves jobs toward their end. SetupWithManager makes one.
type Reconciler struct {
	Config
	client client.Client
	live   client.Reader // reads come from the API server
	writes reconciling.WriteTracker
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	job := &v1alpha1.TrainJob{}
	err := r.client.Get(ctx, req.NamespacedName, job)
	if apierrors.IsNotFound(err) || err == nil && !job.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.abandon(ctx, req)
	}
	if err != nil || r.writes.Stale(job) {
		return reconcile.Result{}, err
	}
	if !job.IsOurs() {
		return reconcile.Result{}, nil
	}
	job.SetDefaults()
	set, err := r.jobSet(ctx, job)
	if err != nil {
		return reconcile.Result{}, r.troubled(ctx, job, err)
	}
	plan := Decide(job, set, r.Clock.Now())
	err = r.carryOut(ctx, job, set, plan)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	case err != nil:
		return reconcile.Result{}, r.troubled(ctx, job, err)
	}
	return reconcile.Result{RequeueAfter: plan.After}, nil
}

// jobSet is the job's, nil when there is none.
func (r *Reconciler) jobSet(ctx context.Context, job *v1alpha1.TrainJob) (*jobset.JobSet, error) {
	set := &jobset.JobSet{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(job), set)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get JobSet %s/%s: %w", job.Namespace, job.Name, err)
	case !metav1.IsControlledBy(set, job):
		if job.IsFinished() {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot create JobSet %s/%s: it exists and is not owned by this TrainJob; delete it or rename the TrainJob", job.Namespace, job.Name)
	}
	return set, nil
}

// abandon lets the JobSet of a job that is gone, or is going, go.
func (r *Reconciler) abandon(ctx context.Context, req reconcile.Request) error {
	set := &jobset.JobSet{}
	if err := r.client.Get(ctx, req.NamespacedName, set); err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.release(ctx, set)
}

// release takes the finalizer from a JobSet.
func (r *Reconciler) release(ctx context.Context, set *jobset.JobSet) error {
	if !slices.Contains(set.Finalizers, holdUntilRead) {
		return nil
	}
	patch := client.MergeFromWithOptions(set.DeepCopy(), client.MergeFromWithOptimisticLock{})
	set.Finalizers = slices.DeleteFunc(set.Finalizers, func(f string) bool { return f == holdUntilRead })
	if err := r.client.Patch(ctx, set, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot release JobSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}

// carryOut executes a plan. The status is written first: the end of a job is
// recorded before anything follows from it.
func (r *Reconciler) carryOut(ctx context.Context, job *v1alpha1.TrainJob, set *jobset.JobSet, plan Plan) error {
	if !equality.Semantic.DeepEqual(job.Status, plan.Status) {
		if err := r.write(ctx, job, plan.Status); err != nil {
			return err
		}
	}
	switch {
	case plan.Make:
		return r.make(ctx, job)
	case plan.Suspend:
		patch := client.MergeFromWithOptions(set.DeepCopy(), client.MergeFromWithOptimisticLock{})
		set.Spec.Suspend = ptr.To(true)
		if err := r.client.Patch(ctx, set, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot suspend JobSet %s/%s: %w", set.Namespace, set.Name, err)
		}
	case plan.Renew:
		return r.renew(ctx, job, set)
	}
	if plan.Release {
		if err := r.release(ctx, set); err != nil {
			return err
		}
	}
	if plan.Delete {
		err := r.client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &set.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete JobSet %s/%s: %w", set.Namespace, set.Name, err)
		}
	}
	return nil
}

// write writes the status.
func (r *Reconciler) write(ctx context.Context, job *v1alpha1.TrainJob, status v1alpha1.TrainJobStatus) error {
	update := &v1alpha1.TrainJob{Status: status}
	if err := reconciling.WriteStatus(ctx, r.client, &r.writes, "TrainJob", job, update); err != nil {
		return err
	}
	job.Status, job.ResourceVersion = status, update.ResourceVersion
	return nil
}

// permanent is an error that no repetition mends.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// troubled reports an error. A permanent one fails the job.
func (r *Reconciler) troubled(ctx context.Context, job *v1alpha1.TrainJob, err error) error {
	r.Events.Warning(job, v1alpha1.ReasonResourcesCreationFailed, "TrainJob resources reconciliation failed: %v", err)
	if !errors.As(err, &permanent{}) {
		return err
	}
	plan := Plan{Status: *job.Status.DeepCopy()}
	message := err.Error()
	plan.fail(v1alpha1.ReasonResourcesCreationFailed, message[:min(len(message), 1024)], r.Clock.Now())
	return r.write(ctx, job, plan.Status)
}
