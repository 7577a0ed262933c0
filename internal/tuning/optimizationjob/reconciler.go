// SPDX-License-Identifier: Apache-2.0

package optimizationjob

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// Name is the controller's name in events.
const Name = "optimizationjob-controller"

// Config configures the reconciler of jobs.
type Config struct {
	// Events records Kubernetes events. Required.
	Events *reconciling.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Concurrency is how many jobs are reconciled at once. Default 4.
	Concurrency int
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config { return Config{Clock: clock.RealClock{}, Concurrency: 4} }

// Reconciler moves jobs toward their end. SetupWithManager makes one.
type Reconciler struct {
	Config
	client client.Client
	writes reconciling.WriteTracker
}

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(mgr manager.Manager, config Config) error {
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&v1alpha1.OptimizationJob{}).
		Owns(&v1beta1.Experiment{}).
		WithOptions(reconciling.ControllerOptions(config.Concurrency)).
		Complete(&Reconciler{Config: config, client: mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	job := &v1alpha1.OptimizationJob{}
	if err := r.client.Get(ctx, req.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !job.DeletionTimestamp.IsZero() || r.writes.Stale(job) {
		return reconcile.Result{}, nil
	}
	err := r.advance(ctx, job)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) advance(ctx context.Context, job *v1alpha1.OptimizationJob) error {
	now := r.Clock.Now()
	e := &v1beta1.Experiment{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(job), e)
	switch {
	case err == nil && metav1.IsControlledBy(e, job):
		return r.write(ctx, job, statusOf(job, e, now))
	case err == nil:
		err = fmt.Errorf("an Experiment %s/%s exists that this OptimizationJob does not own: delete it or rename the OptimizationJob", job.Namespace, job.Name)
	case apierrors.IsNotFound(err) && finished(job.Status):
		return nil
	case apierrors.IsNotFound(err):
		err = r.begin(ctx, job)
	}
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	r.Events.Warning(job, reasonCreationFailed, "%v", err)
	status := statusOf(job, nil, now)
	set(status, now, conditionCreated, false, reasonCreationFailed, err.Error())
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		set(status, now, conditionFailed, true, reasonCreationFailed, err.Error())
		return r.write(ctx, job, status)
	}
	if wrong := r.write(ctx, job, status); wrong != nil {
		return wrong
	}
	return err
}

// begin makes the Experiment.
func (r *Reconciler) begin(ctx context.Context, job *v1alpha1.OptimizationJob) error {
	e, err := NewExperiment(job)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return r.client.Create(ctx, e)
}

// write writes the status, if it has changed.
func (r *Reconciler) write(ctx context.Context, job *v1alpha1.OptimizationJob, status *v1alpha1.OptimizationJobStatus) error {
	if equality.Semantic.DeepEqual(job.Status, status) {
		return nil
	}
	return reconciling.WriteStatus(ctx, r.client, &r.writes, "OptimizationJob", job, &v1alpha1.OptimizationJob{Status: status, Spec: job.Spec})
}
