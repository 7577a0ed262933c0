// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// reconciler moves the jobs of one kind toward their end.
type reconciler struct {
	Config
	framework Framework
	client    client.Client // reads come from the cache
	live      client.Reader // reads come from the API server
	owned     client.Reader // reads come from the cache of what else jobs own
	writes    reconciling.WriteTracker
	ensured   contents
	pace      pace
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	job := r.framework.New()
	if err := r.client.Get(ctx, req.NamespacedName, job); err != nil {
		r.ensured.forget(req.NamespacedName)
		r.Metrics.forget(job, req.NamespacedName)
		r.pace.forget(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.writes.Stale(job) || job.GetDeletionTimestamp() != nil || elsewhere(job) {
		return reconcile.Result{}, nil
	}
	if rest := r.pace.wait(req.NamespacedName, r.Clock.Now()); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	if errs := v1.Validate(job); len(errs) > 0 {
		r.refuse(job, errs.ToAggregate())
		return reconcile.Result{}, nil
	}
	v1.SetDefaults(job)
	wait, err := r.advance(ctx, job)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	case apierrors.IsNotFound(err) && job.State().IsFinished():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// refuse reports that a job is invalid.
func (r *reconciler) refuse(job v1.Job, err error) {
	if v2beta1(job) != nil {
		r.Events.Warning(job, "ValidationError", "Found validation errors: %v", err)
		return
	}
	r.Events.Warning(job, job.Traits().Kind+"FailedValidation", "%s failed validation because %v", job.Traits().Kind, err)
}

// elsewhere reports whether another controller manages the job.
func elsewhere(job v1.Job) bool {
	by := job.Policy().ManagedBy
	return by != nil && *by != job.Traits().ManagedBy()
}

// advance makes one step and returns when to look again, 0 to wait for a change.
func (r *reconciler) advance(ctx context.Context, job v1.Job) (time.Duration, error) {
	now := r.Clock.Now()
	h, err := r.read(ctx, job)
	if err != nil {
		return 0, err
	}
	p := decide(r.framework, job, h, now)
	if p.lost { // the cache may only lag
		if h.pods, err = r.readLive(ctx, job); err != nil {
			return 0, err
		}
		p = decide(r.framework, job, h, now)
	}
	if p.status != nil {
		before := *job.State()
		if err := r.write(ctx, job, p.status); err != nil {
			return 0, err
		}
		r.Metrics.observe(job, &before, p.status)
	}
	r.pace.took(client.ObjectKeyFromObject(job), r.Clock.Since(now), r.Clock.Now())
	for _, e := range p.events {
		if e.warning {
			r.Events.Warning(job, e.reason, "%s", e.message)
		} else {
			r.Events.Normal(job, e.reason, "%s", e.message)
		}
	}
	if err := r.act(ctx, job, p); err != nil || p.launcher == nil {
		return p.after, err
	}
	return p.after, r.launch(ctx, job, h.launcher.job, p.launcher)
}

// read returns what there is of a job.
func (r *reconciler) read(ctx context.Context, job v1.Job) (h have, err error) {
	if h.pods, err = r.podsOf(ctx, job); err != nil {
		return h, err
	}
	var services corev1.ServiceList
	if err := r.client.List(ctx, &services, controlledBy(job)...); err != nil {
		return h, fmt.Errorf("cannot list the Services of %s %s/%s: %w", job.Traits().Kind, job.GetNamespace(), job.GetName(), err)
	}
	h.services = pointers(services.Items)
	j := v2beta1(job)
	if j == nil {
		return h, nil
	}
	if h.launcher, err = r.readLauncher(ctx, j); err != nil {
		return h, err
	}
	if h.launcher.job != nil {
		r.Metrics.launched(j)
	}
	if len(h.services) == 0 {
		r.ensured.forget(client.ObjectKeyFromObject(job)) // it has one, which is to be made
	}
	return h, nil
}

// podsOf returns the Pods that an object controls.
func (r *reconciler) podsOf(ctx context.Context, owner client.Object) ([]*corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, controlledBy(owner)...); err != nil {
		return nil, fmt.Errorf("cannot list the Pods of %T %s/%s: %w", owner, owner.GetNamespace(), owner.GetName(), err)
	}
	return pointers(pods.Items), nil
}

// controlledBy returns the cached objects that an object controls.
func controlledBy(owner client.Object) []client.ListOption {
	return []client.ListOption{client.InNamespace(owner.GetNamespace()), client.MatchingFields{ownerIndex: string(owner.GetUID())}, client.UnsafeDisableDeepCopy}
}

// readLive returns the Pods that a job controls, as the API server has them.
func (r *reconciler) readLive(ctx context.Context, job v1.Job) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.live.List(ctx, &list, client.InNamespace(job.GetNamespace()), client.MatchingLabels(jobLabels(job))); err != nil {
		return nil, fmt.Errorf("cannot list the Pods of %s %s/%s: %w", job.Traits().Kind, job.GetNamespace(), job.GetName(), err)
	}
	return slices.DeleteFunc(pointers(list.Items), func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, job) }), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// write writes the status.
func (r *reconciler) write(ctx context.Context, job v1.Job, status *v1.JobStatus) error {
	update := r.framework.New()
	*update.State() = *status
	if err := reconciling.WriteStatus(ctx, r.client, &r.writes, job.Traits().Kind, job, update); err != nil {
		return err
	}
	*job.State() = *status
	return nil
}

// act executes a plan.
func (r *reconciler) act(ctx context.Context, job v1.Job, p plan) error {
	for _, pod := range p.delete {
		if err := r.delete(ctx, job, pod, "Pod"); err != nil {
			return err
		}
	}
	for _, s := range p.deleteServices {
		if err := r.delete(ctx, job, s, "Service"); err != nil {
			return err
		}
	}
	if err := r.drop(ctx, job, p.drop); err != nil {
		return err
	}
	if p.remove {
		return r.remove(ctx, job)
	}
	if err := r.ensure(ctx, job, p.objects); err != nil {
		return err
	}
	if err := batches(p.createServices, func(replica Replica) error {
		return r.create(ctx, job, newService(job, replica), "Service")
	}); err != nil {
		return err
	}
	if len(p.create) == 0 {
		return nil
	}
	if ok, err := r.placeable(ctx, job); err != nil || !ok {
		return err
	}
	return batches(p.create, func(replica Replica) error {
		return r.create(ctx, job, newPod(r.framework, job, replica), "Pod")
	})
}

// create creates an object of a job. An existing one is the job's own, which the
// cache does not show yet, or a conflict.
func (r *reconciler) create(ctx context.Context, job v1.Job, obj client.Object, kind string) error {
	err := r.client.Create(ctx, obj)
	switch {
	case err == nil:
		r.Events.Normal(job, "SuccessfulCreate"+kind, "Created %s: %s", kind, obj.GetName())
		return nil
	case !apierrors.IsAlreadyExists(err):
		r.Events.Warning(job, "FailedCreate"+kind, "Error creating: %v", err)
		return fmt.Errorf("cannot create %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
	}
	have := obj.DeepCopyObject().(client.Object)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(obj), have); err != nil {
		return client.IgnoreNotFound(err) // it is just going: its event calls again
	}
	if metav1.IsControlledBy(have, job) {
		return nil
	}
	err = fmt.Errorf("cannot create %s %s/%s: an object with this name exists and is not owned by the job; delete it", kind, obj.GetNamespace(), obj.GetName())
	r.Events.Warning(job, "FailedCreate"+kind, "Error creating: %v", err)
	return err
}

// delete deletes an object of a job, if it is the one that was seen.
func (r *reconciler) delete(ctx context.Context, job v1.Job, obj client.Object, kind string) error {
	uid := obj.GetUID()
	err := r.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	switch {
	case err == nil:
		r.Events.Normal(job, "SuccessfulDelete"+kind, "Deleted %s: %s", kind, obj.GetName())
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // it is gone, or another has its name
	}
	r.Events.Warning(job, "FailedDelete"+kind, "Error deleting: %v", err)
	return fmt.Errorf("cannot delete %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
}

// remove deletes a job whose time after its end is over.
func (r *reconciler) remove(ctx context.Context, job v1.Job) error {
	uid := job.GetUID()
	err := r.client.Delete(ctx, job, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s %s/%s, which ended: %w", job.Traits().Kind, job.GetNamespace(), job.GetName(), err)
	}
	r.writes.Forget(uid)
	r.Metrics.deleted.WithLabelValues(job.GetNamespace(), job.Traits().Framework).Inc()
	return nil
}
