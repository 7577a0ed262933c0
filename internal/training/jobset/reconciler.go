// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// Reconciler moves sets toward their end. SetupWithManager makes one.
type Reconciler struct {
	Config
	client   client.Client
	children client.Reader // the cache of Jobs and Services
	live     client.Reader // reads come from the API server
	writes   reconciling.WriteTracker
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	set := &v1alpha2.JobSet{}
	if err := r.client.Get(ctx, req.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	by := ptr.Deref(set.Spec.ManagedBy, v1alpha2.ControllerName)
	if by != v1alpha2.ControllerName || !set.DeletionTimestamp.IsZero() || r.writes.Stale(set) {
		return reconcile.Result{}, nil
	}
	set.SetDefaults()
	jobs, err := r.jobs(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := Decide(set, jobs, r.Clock.Now())
	err = r.carryOut(ctx, set, plan)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	}
	return reconcile.Result{RequeueAfter: plan.After}, err
}

// jobs are those that the set owns.
func (r *Reconciler) jobs(ctx context.Context, set *v1alpha2.JobSet) ([]*batchv1.Job, error) {
	var list batchv1.JobList
	if err := r.children.List(ctx, &list, client.InNamespace(set.Namespace), client.MatchingLabels{v1alpha2.LabelJobSetName: set.Name}); err != nil {
		return nil, fmt.Errorf("cannot list the Jobs of JobSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	var jobs []*batchv1.Job
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], set) {
			jobs = append(jobs, &list.Items[i])
		}
	}
	return jobs, nil
}

// carryOut executes a plan. Failures are retried; the status is written
// regardless, since it describes the observed state.
func (r *Reconciler) carryOut(ctx context.Context, set *v1alpha2.JobSet, plan Plan) error {
	if plan.Expired {
		return r.delete(ctx, set)
	}
	errs := []error{r.act(ctx, set, plan)}
	if !equality.Semantic.DeepEqual(set.Status, plan.Status) {
		errs = append(errs, r.write(ctx, set, plan))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) act(ctx context.Context, set *v1alpha2.JobSet, plan Plan) error {
	var errs []error
	for _, job := range plan.Delete {
		if job.DeletionTimestamp.IsZero() {
			errs = append(errs, r.delete(ctx, job))
		}
	}
	if plan.Support {
		if err := r.support(ctx, set); err != nil {
			return errors.Join(append(errs, err)...) // Pods without names are of no use
		}
	}
	if len(plan.Create) > 0 {
		if err := r.claims(ctx, set); err != nil {
			return errors.Join(append(errs, err)...) // nor those without volumes
		}
	}
	for _, job := range plan.Create {
		errs = append(errs, r.create(ctx, set, job))
	}
	for _, job := range plan.Suspend {
		patch := client.MergeFrom(job.DeepCopy())
		job.Spec.Suspend = ptr.To(true)
		errs = append(errs, client.IgnoreNotFound(r.client.Patch(ctx, job, patch)))
	}
	for _, job := range plan.Resume {
		errs = append(errs, r.resume(ctx, job))
	}
	return errors.Join(errs...)
}

// delete deletes an object, if it is still the one that was seen, once its Pods
// are gone.
func (r *Reconciler) delete(ctx context.Context, o client.Object) error {
	err := r.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: ptr.To(o.GetUID())})
	if err = client.IgnoreNotFound(err); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("cannot delete %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// support makes the set's Service.
func (r *Reconciler) support(ctx context.Context, set *v1alpha2.JobSet) error {
	if ptr.Deref(set.Spec.Network.EnableDNSHostnames, false) {
		service := newService(set)
		err := r.children.Get(ctx, client.ObjectKeyFromObject(service), &corev1.Service{})
		if apierrors.IsNotFound(err) {
			err = r.client.Create(ctx, service)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			r.Events.Warning(set, v1alpha2.ReasonHeadlessServiceCreationFailed, "%v", err)
			return fmt.Errorf("cannot create Service %s/%s: %w", set.Namespace, service.Name, err)
		}
	}
	return nil
}

// claims makes the set's claims. They are in no cache: they are made before Jobs
// are, and else are not asked for.
func (r *Reconciler) claims(ctx context.Context, set *v1alpha2.JobSet) error {
	for _, claim := range newClaims(set) {
		if err := r.client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
			r.Events.Warning(set, v1alpha2.ReasonClaimCreationFailed, "%v", err)
			return fmt.Errorf("cannot create PersistentVolumeClaim %s/%s: %w", set.Namespace, claim.Name, err)
		}
	}
	return nil
}

// create creates a Job. An existing one is the set's own, which the cache
// does not have yet; one with another owner is an error.
func (r *Reconciler) create(ctx context.Context, set *v1alpha2.JobSet, job *batchv1.Job) error {
	err := r.client.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		have := &metav1.PartialObjectMetadata{}
		have.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
		if live := r.live.Get(ctx, client.ObjectKeyFromObject(job), have); live == nil && metav1.IsControlledBy(have, set) {
			return nil
		}
	}
	if err != nil {
		r.Events.Warning(set, v1alpha2.ReasonJobCreationFailed, "job %q creation failed with error: %v", job.Name, err)
		return fmt.Errorf("cannot create Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// resume resumes a Job. Kubernetes accepts changes of a Job's Pod template
// only while the Job has no start time.
func (r *Reconciler) resume(ctx context.Context, job *batchv1.Job) error {
	if job.Status.StartTime != nil {
		job.Status.StartTime = nil
		spec := job.Spec.DeepCopy()
		if err := r.client.Status().Update(ctx, job); err != nil {
			return client.IgnoreNotFound(err)
		}
		job.Spec = *spec
	}
	return client.IgnoreNotFound(r.client.Update(ctx, job))
}

// write writes the status and records what changed.
func (r *Reconciler) write(ctx context.Context, set *v1alpha2.JobSet, plan Plan) error {
	if err := reconciling.WriteStatus(ctx, r.client, &r.writes, "JobSet", set, &v1alpha2.JobSet{Status: plan.Status}); err != nil {
		return err
	}
	for _, e := range plan.Events {
		if e.Warning {
			r.Events.Warning(set, e.Reason, "%s", e.Message)
		} else {
			r.Events.Normal(set, e.Reason, "%s", e.Message)
		}
	}
	return nil
}
