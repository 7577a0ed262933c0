// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/api/kubeflow/v2beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/cli/progress"
)

// Fact is one thing seen of a followed object.
type Fact struct {
	// ID names the followed object.
	ID progress.ID

	status  *progress.Status
	trial   *progress.Trial
	removed string
	warning string
	initial bool
}

// Warning is a warning of the cluster about a Pod of the object; "" for other facts.
func (f Fact) Warning() string { return f.warning }

// Apply feeds the fact to the model of its object.
func (f Fact) Apply(w *progress.Work, now time.Time) []progress.Event {
	switch {
	case f.status != nil:
		return w.SetStatus(*f.status, now)
	case f.trial != nil:
		return w.SetTrial(*f.trial, f.initial, now)
	case f.removed != "":
		w.RemoveTrial(f.removed)
	}
	return nil
}

// Followable reports whether objects of a kind come to an end that can be watched.
func Followable(apiVersion, kind string) bool {
	switch apiVersion + " " + kind {
	case kubeflow.GroupVersion.String() + " Experiment", "batch/v1 Job", "v1 Pod":
		return true
	}
	if apiVersion == trainer.GroupVersion.String() {
		return kind == trainer.TrainJobKind || kind == trainer.OptimizationJobKind
	}
	if apiVersion == v1.GroupVersion.String() {
		return trainingJob(kind) != nil
	}
	return apiVersion == v2beta1.GroupVersion.String() && kind == "MPIJob"
}

// Target is an object to follow, of a kind that is [Followable].
type Target struct {
	progress.ID
	// UID tells the object's trials from those of an earlier object of its name.
	UID types.UID
}

// Watch tells what happens to the targets on facts until ctx ends. The returned function waits
// until nothing is sent any more.
func Watch(ctx context.Context, c client.WithWatch, targets []Target, facts chan<- Fact) (wait func()) {
	var running sync.WaitGroup
	ids := make([]progress.ID, len(targets))
	for i, target := range targets {
		id := target.ID
		ids[i] = id
		f := &follower{client: c, id: id, uid: target.UID, facts: facts}
		named := fields.OneTermEqualSelector("metadata.name", id.Name)
		if id.Searches() {
			running.Go(func() {
				ofExperiment := labels.SelectorFromSet(labels.Set{kubeflow.LabelExperiment: id.Name})
				f.run(ctx, &kubeflow.Trial{}, &kubeflow.TrialList{}, nil, ofExperiment)
			})
		}
		switch id.Kind {
		case "Experiment":
			running.Go(func() { f.run(ctx, &kubeflow.Experiment{}, &kubeflow.ExperimentList{}, named, nil) })
		case "Job":
			running.Go(func() { f.run(ctx, &batchv1.Job{}, &batchv1.JobList{}, named, nil) })
		case "Pod":
			running.Go(func() { f.run(ctx, &corev1.Pod{}, &corev1.PodList{}, named, nil) })
		case trainer.TrainJobKind:
			running.Go(func() { f.run(ctx, &trainer.TrainJob{}, &trainer.TrainJobList{}, named, nil) })
		case trainer.OptimizationJobKind:
			running.Go(func() { f.run(ctx, &trainer.OptimizationJob{}, &trainer.OptimizationJobList{}, named, nil) })
		default:
			if training := trainingJob(id.Kind); training != nil {
				running.Go(func() { f.run(ctx, training, v1.NewList(training), named, nil) })
			}
		}
	}
	for namespace, ids := range byNamespace(ids) {
		w := &warnings{client: c, namespace: namespace, ids: ids, since: time.Now(), facts: facts}
		running.Go(func() { w.run(ctx) })
	}
	return running.Wait
}

// follower turns the changes of one followed object, and of its trials, into facts.
type follower struct {
	client client.WithWatch
	id     progress.ID
	uid    types.UID
	facts  chan<- Fact
}

// run watches the objects of one type that the selectors choose, until ctx ends.
func (f *follower) run(ctx context.Context, object client.Object, list client.ObjectList, field fields.Selector, label labels.Selector) {
	inform(ctx, f.client, object, list, client.ListOptions{Namespace: f.id.Namespace, FieldSelector: field, LabelSelector: label}, cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(seen any, initial bool) { f.send(ctx, f.fact(seen, initial)) },
		UpdateFunc: func(_, seen any) { f.send(ctx, f.fact(seen, false)) },
		DeleteFunc: func(seen any) { f.send(ctx, f.gone(seen)) },
	})
}

// inform calls handler for the objects of one type that the options choose, until ctx ends.
func inform(ctx context.Context, c client.WithWatch, object client.Object, list client.ObjectList, which client.ListOptions, handler cache.ResourceEventHandler) {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		chosen := which
		chosen.Raw = &raw
		return &chosen
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
				into := list.DeepCopyObject().(client.ObjectList)
				return into, c.List(ctx, into, options(raw))
			},
			WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), options(raw))
			},
		}, c),
		ObjectType: object,
		Transform:  slim,
		Handler:    handler,
	})
	controller.RunWithContext(ctx)
}

func (f *follower) send(ctx context.Context, fact Fact) {
	if fact == (Fact{}) {
		return
	}
	fact.ID = f.id
	send(ctx, f.facts, fact)
}

// send hands over a fact, unless ctx ends before it is taken.
func send(ctx context.Context, facts chan<- Fact, fact Fact) {
	select {
	case facts <- fact:
	case <-ctx.Done():
	}
}

// has reports whether a trial is the followed object's, and not that of an earlier object of its
// name. An OptimizationJob's belong to its Experiment, whose UID is not known here: those of an
// earlier one are being deleted.
func (f *follower) has(t *kubeflow.Trial) bool {
	if f.id.Kind == trainer.OptimizationJobKind {
		return t.DeletionTimestamp == nil
	}
	owner := metav1.GetControllerOf(t)
	return owner == nil || owner.UID == f.uid
}

// fact reads an object that was seen.
func (f *follower) fact(seen any, initial bool) Fact {
	var status progress.Status
	switch seen := seen.(type) {
	case *kubeflow.Experiment:
		status = experimentStatus(seen)
	case *kubeflow.Trial:
		if !f.has(seen) {
			return Fact{}
		}
		trial := trialOf(seen)
		return Fact{trial: &trial, initial: initial}
	case *batchv1.Job:
		status = jobStatus(seen)
	case *corev1.Pod:
		status = podStatus(seen)
	case *trainer.TrainJob:
		status = trainJobStatus(seen)
	case *trainer.OptimizationJob:
		status = optimizationJobStatus(seen)
	case v1.Job:
		status = trainingStatus(seen)
	}
	return Fact{status: &status}
}

// gone reads an object that was deleted: a trial is forgotten, a followed object has failed.
func (f *follower) gone(seen any) Fact {
	if last, ok := seen.(cache.DeletedFinalStateUnknown); ok {
		seen = last.Obj
	}
	switch seen := seen.(type) {
	case *kubeflow.Trial:
		return Fact{removed: seen.Name}
	case *batchv1.Job:
		// What is finished may be cleaned away before its end was seen.
		if status := jobStatus(seen); status.Condition != "" {
			return Fact{status: &status}
		}
	case *corev1.Pod:
		if status := podStatus(seen); status.Condition != "" {
			return Fact{status: &status}
		}
	case v1.Job:
		if status := trainingStatus(seen); status.Condition != "" {
			return Fact{status: &status}
		}
	}
	return Fact{status: &progress.Status{
		Condition: progress.ConditionFailed, Reason: "Deleted",
		Message: fmt.Sprintf("%s %s was deleted", f.id.Kind, f.id.Name),
	}}
}

// slim drops what is large and not shown before an object is kept.
func slim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	switch object := object.(type) {
	case *kubeflow.Trial:
		object.Spec.RunSpec = nil
	case *kubeflow.Experiment:
		object.Spec.TrialTemplate = nil
	}
	return object, nil
}
