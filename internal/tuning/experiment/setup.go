// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/platform/tracing"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// Name is the controller's name in events and metrics.
const Name = "experiment-controller"

// queue is the controller's work queue.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(mgr manager.Manager, config Config) error {
	r := &Reconciler{
		Config:    config,
		client:    mgr.GetClient(),
		templates: trialtemplate.Library{Reader: mgr.GetAPIReader(), Namespace: config.Namespace},
		roster:    newRoster(),
		pacing:    map[types.UID]*pace{},
	}
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		Watches(&v1beta1.Experiment{}, r.onExperiment()).
		Watches(&v1beta1.Trial{}, r.onTrial()).
		Watches(&v1beta1.Suggestion{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1beta1.Experiment{}, handler.OnlyControllerOwner())).
		WithOptions(reconciling.ControllerOptions(config.Concurrency)).
		Complete(tracing.Reconciler("Experiment", r))
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	return nil
}

// onExperiment reconciles an experiment that changed, and forgets one that is
// gone.
func (r *Reconciler) onExperiment() handler.EventHandler {
	enqueue := func(o client.Object, q queue) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			r.forget(e.Object.GetUID())
			r.Metrics.ExperimentsDeleted.WithLabelValues(e.Object.GetNamespace()).Inc()
		},
	}
}

// onTrial keeps the roster, and reconciles the experiment of a trial when
// something that counts has changed.
func (r *Reconciler) onTrial() handler.EventHandler {
	enqueue := func(t *v1beta1.Trial, changed bool, q queue) {
		if changed {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: t.Namespace, Name: ownerOf(t).Name}})
		}
	}
	put := func(o client.Object, q queue) {
		if t, ok := o.(*v1beta1.Trial); ok {
			enqueue(t, r.roster.put(t), q)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { put(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { put(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if t, ok := e.Object.(*v1beta1.Trial); ok {
				enqueue(t, r.roster.drop(t), q)
				r.Metrics.TrialsDeleted.WithLabelValues(t.Namespace).Inc()
			}
		},
	}
}

// suggestionAnnotations returns the experiment's annotations, without
// kubectl's last-applied configuration.
func suggestionAnnotations(e *v1beta1.Experiment) map[string]string {
	annotations := maps.Clone(e.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return annotations
}
