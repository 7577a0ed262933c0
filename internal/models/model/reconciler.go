// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/models/v1alpha1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// Name is the controller's name in events.
const Name = "model-controller"

// indexModel is the index of versions by their model.
const indexModel = "spec.model"

// Config configures the reconciler.
type Config struct {
	// Events records Kubernetes events. Required.
	Events *reconciling.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Concurrency is how many models are reconciled at once. Default 4.
	Concurrency int
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config { return Config{Clock: clock.RealClock{}, Concurrency: 4} }

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, config Config) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.ModelVersion{}, indexModel, func(o client.Object) []string {
		return []string{o.(*v1alpha1.ModelVersion).Spec.Model}
	}); err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	r := &reconciler{Config: config, client: mgr.GetClient()}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&v1alpha1.Model{}).
		Watches(&v1alpha1.ModelVersion{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: o.(*v1alpha1.ModelVersion).Spec.Model}}}
		})).
		WithOptions(reconciling.ControllerOptions(config.Concurrency)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	return nil
}

type reconciler struct {
	Config
	client client.Client
	writes reconciling.WriteTracker
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	versions, err := r.versions(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	m := &v1alpha1.Model{}
	err = r.client.Get(ctx, req.NamespacedName, m)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.invent(ctx, req.NamespacedName, versions)
	}
	if err != nil || !m.DeletionTimestamp.IsZero() || r.writes.Stale(m) {
		return reconcile.Result{}, err
	}
	err = r.carryOut(ctx, m, versions, Decide(m, versions, r.Clock.Now()))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache lags
	}
	return reconcile.Result{}, err
}

func (r *reconciler) versions(ctx context.Context, model client.ObjectKey) ([]*v1alpha1.ModelVersion, error) {
	var list v1alpha1.ModelVersionList
	if err := r.client.List(ctx, &list, client.InNamespace(model.Namespace), client.MatchingFields{indexModel: model.Name}); err != nil {
		return nil, fmt.Errorf("cannot list the versions of model %s: %w", model, err)
	}
	var versions []*v1alpha1.ModelVersion
	for i := range list.Items {
		versions = append(versions, &list.Items[i])
	}
	return versions, nil
}

// invent creates the Model of versions that nobody made one for. Versions that had a
// Model go with it.
func (r *reconciler) invent(ctx context.Context, key client.ObjectKey, versions []*v1alpha1.ModelVersion) error {
	for _, v := range versions {
		if !v.DeletionTimestamp.IsZero() || adopted(v) != nil {
			continue
		}
		m := &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := r.client.Create(ctx, m); err != nil && !apierrors.IsAlreadyExists(err) {
			if reconciling.Forbidden(err) || apierrors.IsInvalid(err) {
				r.Events.Warning(v, "ModelMissing", "cannot create the Model %s: %v", key.Name, err)
				return nil
			}
			return fmt.Errorf("cannot create model %s: %w", key, err)
		}
		return nil
	}
	return nil
}

// adopted is the reference to the Model that a version belongs to, nil without one.
func adopted(v *v1alpha1.ModelVersion) *metav1.OwnerReference {
	for i := range v.OwnerReferences {
		if ref := &v.OwnerReferences[i]; ref.Kind == v1alpha1.ModelKind && ref.APIVersion == v1alpha1.GroupVersion.String() {
			return ref
		}
	}
	return nil
}

func (r *reconciler) carryOut(ctx context.Context, m *v1alpha1.Model, versions []*v1alpha1.ModelVersion, plan Plan) error {
	var errs []error
	// The number comes first: a version that is gone must have left its trace.
	if !equality.Semantic.DeepEqual(m.Status, plan.Status) {
		if err := reconciling.WriteStatus(ctx, r.client, &r.writes, v1alpha1.ModelKind, m, &v1alpha1.Model{Status: plan.Status}); err != nil {
			return err
		}
	}
	for _, v := range versions {
		if v.DeletionTimestamp.IsZero() {
			errs = append(errs, r.adopt(ctx, m, v), r.mark(ctx, v, plan.Aliases[v.Spec.Version]))
		}
	}
	for _, v := range plan.Expired {
		errs = append(errs, r.expire(ctx, m, v))
	}
	return errors.Join(errs...)
}

// adopt gives a version the Model as its owner, and the label.
func (r *reconciler) adopt(ctx context.Context, m *v1alpha1.Model, v *v1alpha1.ModelVersion) error {
	if ref := adopted(v); v.Labels[v1alpha1.LabelModel] == m.Name && ref != nil {
		return nil
	}
	next := v.DeepCopy()
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	next.Labels[v1alpha1.LabelModel] = m.Name
	if adopted(v) == nil {
		gvk, err := apiutil.GVKForObject(m, r.client.Scheme())
		if err != nil {
			return err
		}
		next.OwnerReferences = append(next.OwnerReferences, metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: m.Name, UID: m.UID})
	}
	err := r.client.Patch(ctx, next, client.MergeFromWithOptions(v.DeepCopy(), client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot adopt version %s/%s of model %s: %w", v.Namespace, v.Name, m.Name, err)
	}
	next.DeepCopyInto(v)
	return nil
}

// mark writes a version's aliases to its status.
func (r *reconciler) mark(ctx context.Context, v *v1alpha1.ModelVersion, aliases []string) error {
	if equality.Semantic.DeepEqual(v.Status.Aliases, aliases) {
		return nil
	}
	next := v.DeepCopy()
	next.Status.Aliases = aliases
	if err := r.client.Status().Patch(ctx, next, client.MergeFrom(v.DeepCopy())); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the aliases of version %s/%s: %w", v.Namespace, v.Name, err)
	}
	next.DeepCopyInto(v)
	return nil
}

// expire deletes a version as it was read: who has begun to use it since then keeps it.
func (r *reconciler) expire(ctx context.Context, m *v1alpha1.Model, v *v1alpha1.ModelVersion) error {
	err := r.client.Delete(ctx, v, client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("cannot delete version %s/%s: %w", v.Namespace, v.Name, err)
	}
	r.Events.Normal(m, "VersionExpired", "deleted version %d: spec.keepVersions keeps the newest %d", v.Spec.Version, *m.Spec.KeepVersions)
	return nil
}
