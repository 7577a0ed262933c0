// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/platform/tracing"
)

// Name is the controller's name in events and metrics.
const Name = "suggestion-controller"

// queue is the controller's work queue.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(mgr manager.Manager, config Config) error {
	r := &Reconciler{Config: config, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	// Services may be slow: waiting for one does not block the others.
	for name, queue := range map[string]struct {
		outside bool
		workers int
	}{
		Name:                 {false, config.Concurrency},
		Name + "-of-service": {true, config.Asking},
	} {
		b := builder.ControllerManagedBy(mgr).
			Named(name).
			Watches(&v1beta1.Suggestion{}, r.onSuggestion()).
			Watches(&v1beta1.Experiment{}, onExperiment())
		if !config.RunsNothing {
			b = b.Watches(&appsv1.Deployment{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1beta1.Suggestion{}, handler.OnlyControllerOwner()))
		}
		err := b.
			WithEventFilter(predicate.NewPredicateFuncs(func(o client.Object) bool { return isOutside(o) == queue.outside })).
			WithOptions(reconciling.ControllerOptions(queue.workers)).
			Complete(tracing.Reconciler("Suggestion", r))
		if err != nil {
			return fmt.Errorf("cannot set up %s: %w", name, err)
		}
	}
	return nil
}

// isOutside is outside for a Suggestion, an Experiment, or what runs a service.
func isOutside(o client.Object) bool {
	switch o := o.(type) {
	case *v1beta1.Suggestion:
		return outside(o.Spec.Algorithm, o.Spec.EarlyStopping)
	case *v1beta1.Experiment:
		return outside(o.Spec.Algorithm, o.Spec.EarlyStopping)
	case *appsv1.Deployment:
		return true
	}
	return false
}

func enqueue(o client.Object, q queue) {
	q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
}

// onSuggestion reconciles a suggestion that changed, and forgets one that is
// gone.
func (r *Reconciler) onSuggestion() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			r.forget(e.Object.GetUID())
			if owner := metav1.GetControllerOf(e.Object); owner != nil {
				r.Stopping.Drop(owner.UID)
			}
			r.writes.Forget(e.Object.GetUID())
		},
	}
}

// onExperiment reconciles the suggestion of an experiment that ended or
// resumed.
func onExperiment() handler.EventHandler {
	over := func(o client.Object) bool {
		e, ok := o.(*v1beta1.Experiment)
		return ok && e.IsCompleted()
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if over(e.ObjectOld) != over(e.ObjectNew) {
				enqueue(e.ObjectNew, q)
			}
		},
	}
}
