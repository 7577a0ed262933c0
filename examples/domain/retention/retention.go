// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// pathValidate is where the API server asks about Retentions.
const pathValidate = "/validate-example-com-v1-retention"

// Domain is what the platform is told: the kind with the rights that its reconciler
// needs, its webhook, and how both are set up.
func Domain() domain.Domain {
	return domain.Domain{
		Name: "retention",
		AddToScheme: func(scheme *runtime.Scheme) error {
			if err := v1beta1.AddToScheme(scheme); err != nil {
				return err
			}
			return AddToScheme(scheme)
		},
		Kinds: []domain.Kind{{
			GroupVersionKind: GroupVersion.WithKind("Retention"), Plural: "retentions", Object: &Retention{}, Users: domain.UsersEdit,
			Rules: []domain.Rule{
				domain.Allow(GroupVersion.Group, []string{"get", "list", "watch"}, "retentions"),
				domain.Allow(v1beta1.Group, []string{"get", "list", "watch", "delete"}, "experiments").Because("Experiments whose time is over."),
			},
		}},
		Webhooks: []admission.Webhook{
			admission.Validator("validator.retention.example.com", pathValidate, GroupVersion.WithResource("retentions")),
		},
		SetUp: setUp,
	}
}

func setUp(h *domain.Host) error {
	h.Answer(pathValidate, Validate)
	r := &reconciler{client: h.GetClient(), clock: clock.RealClock{}}
	return ctrl.NewControllerManagedBy(h).
		Named("retention-controller").
		For(&Retention{}).
		Watches(&v1beta1.Experiment{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace)).
		WithOptions(reconciling.ControllerOptions(1)).
		Complete(r)
}

// Validate refuses a time in the past.
func Validate(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	r := &Retention{}
	warnings, err := admission.Decode(req.Object.Raw, r)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	var errs field.ErrorList
	if r.Spec.After.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "after"), r.Spec.After.Duration.String(), "must be 0s or more"))
	}
	return admission.Decide(req, errs).WithWarnings(warnings...)
}

// Due decides which experiments are to go now, and when the next one is, 0 for none.
func Due(experiments []v1beta1.Experiment, after time.Duration, now time.Time) (due []*v1beta1.Experiment, next time.Duration) {
	for i := range experiments {
		e := &experiments[i]
		if e.Status.CompletionTime == nil || !e.DeletionTimestamp.IsZero() {
			continue
		}
		if left := e.Status.CompletionTime.Add(after).Sub(now); left <= 0 {
			due = append(due, e)
		} else {
			next = reconciling.Soonest(next, left)
		}
	}
	return due, next
}

type reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	retention := &Retention{}
	if err := r.client.Get(ctx, req.NamespacedName, retention); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var experiments v1beta1.ExperimentList
	if err := r.client.List(ctx, &experiments, client.InNamespace(req.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list experiments: %w", err)
	}
	due, next := Due(experiments.Items, retention.Spec.After.Duration, r.clock.Now())
	for _, e := range due {
		if err := r.client.Delete(ctx, e, client.Preconditions{UID: &e.UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("cannot delete experiment %s/%s: %w", e.Namespace, e.Name, err)
		}
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// ofNamespace are the Retentions that an experiment is subject to.
func (r *reconciler) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	var all RetentionList
	if err := r.client.List(ctx, &all, client.InNamespace(o.GetNamespace())); err != nil {
		return nil // the cache is filled, so that it can be read
	}
	var requests []reconcile.Request
	for _, retention := range all.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&retention)})
	}
	return requests
}
