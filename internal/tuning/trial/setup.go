// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/platform/tracing"
	"diwan.dev/diwan/observation"
)

// Name is the controller's name in events and metrics.
const Name = "trial-controller"

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(mgr manager.Manager, config Config) error {
	watch, err := newWatches(mgr, config.Clock)
	if err != nil {
		return err
	}
	r := &Reconciler{Config: config, client: mgr.GetClient(), live: mgr.GetAPIReader(), watch: watch}
	b := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&v1beta1.Trial{}).
		Owns(&batchv1.Job{}).
		Watches(&v1beta1.Experiment{}, r.onExperiment()).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.again = q.Add
			return nil
		})).
		WithOptions(reconciling.ControllerOptions(config.Concurrency))
	if store, ok := config.Store.(observation.Announcer); ok {
		b.WatchesRawSource(r.reports(store))
	}
	c, err := b.Build(tracing.Reconciler("Trial", r))
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	r.watch.controller = c
	return nil
}

// reports reconciles a trial that may be stopped early when it has reported
// something.
func (r *Reconciler) reports(store observation.Announcer) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		stop := store.Listen(func(t observation.Trial) {
			if r.memory.awaits(t) {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}})
			}
		})
		context.AfterFunc(ctx, stop)
		return nil
	})
}

// onExperiment reconciles the trials of an experiment that has another order for
// them.
func (r *Reconciler) onExperiment() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		before, wasOne := e.ObjectOld.(*v1beta1.Experiment)
		after, isOne := e.ObjectNew.(*v1beta1.Experiment)
		if !wasOne || !isOne {
			return
		}
		was, _ := orderOf(before)
		if is, _ := orderOf(after); is == was {
			return
		}
		var trials v1beta1.TrialList
		err := r.client.List(ctx, &trials, client.InNamespace(after.Namespace),
			client.MatchingLabels{v1beta1.LabelExperiment: after.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			r.Events.Warning(after, v1beta1.ReasonReconcileError, "Failed to list trials: %v", err)
			return
		}
		for i := range trials.Items {
			if t := &trials.Items[i]; !t.IsCompleted() {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(t)})
			}
		}
	}}
}

// Slim drops, from objects that enter a cache, what reconcilers never read:
// managed fields, and of a trial that ended the run object but for its kind.
// With thousands of finished trials that is most of the memory. Trials from
// such a cache must not be written back whole.
func Slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	if t, ok := object.(*v1beta1.Trial); ok && t.Spec.RunSpec != nil && t.IsCompleted() {
		run := &unstructured.Unstructured{Object: map[string]any{}}
		run.SetGroupVersionKind(t.Spec.RunSpec.GroupVersionKind())
		t.Spec.RunSpec = run
	}
	return object, nil
}
