// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

// Fact is one thing seen of a followed object.
type Fact struct {
	// ID names the followed object.
	ID progress.ID

	status  *progress.Status
	trial   *progress.Trial
	removed string
	pod     *progress.Pod
	warning string
	about   string // what the warning is about, unless that is a Pod
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
	case f.pod != nil:
		w.SetPod(*f.pod)
	case f.about != "":
		w.SetTrouble(f.about, f.warning)
	}
	return nil
}

// Target is an object to follow, of a kind that can be followed.
type Target struct {
	progress.ID
	// UID tells the object's trials from those of an earlier object of its name.
	UID types.UID
}

// Watch tells what happens to the targets on facts until ctx ends. The returned function waits
// until nothing is sent any more.
func (kinds Kinds) Watch(ctx context.Context, c client.WithWatch, targets []Target, facts chan<- Fact) (wait func()) {
	var running sync.WaitGroup
	for _, target := range targets {
		f := &follower{client: c, Target: target, kind: kinds.Named(target.Kind), facts: facts}
		for _, w := range f.watches() {
			running.Go(func() { f.run(ctx, w) })
		}
	}
	for namespace, ids := range byNamespace(targets) {
		w := &warnings{client: c, kinds: kinds, namespace: namespace, ids: ids, since: time.Now(), facts: facts}
		running.Go(func() { w.run(ctx) })
	}
	return running.Wait
}

// follower turns the changes of one followed object, and of its trials and Pods, into facts.
type follower struct {
	Target
	client client.WithWatch
	kind   *Kind
	facts  chan<- Fact
}

// watched are objects of one type about which a follower tells.
type watched struct {
	object client.Object
	list   client.ObjectList
	which  client.ListOptions
	slim   func(client.Object)
	// seen and gone read one that is there, and one that was deleted. initial is whether it was there
	// when the watch began.
	seen func(object client.Object, initial bool) Fact
	gone func(last client.Object) Fact
}

// watches are the object itself, its trials if it searches, and its Pods if they name it.
func (f *follower) watches() []watched {
	all := []watched{{
		object: f.kind.Object, list: f.kind.List, slim: f.kind.Slim,
		which: client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", f.Name)},
		seen:  f.itself, gone: f.itselfGone,
	}}
	named := func(label string) client.ListOptions {
		return client.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{label: f.Name})}
	}
	if s := f.kind.Search; s != nil {
		all = append(all, watched{object: s.Trial, list: s.List, slim: s.Slim, which: named(s.Label), seen: f.trial, gone: f.trialGone})
	}
	if f.kind.PodLabel != "" {
		all = append(all, watched{object: &corev1.Pod{}, list: &corev1.PodList{}, slim: slimPod, which: named(f.kind.PodLabel), seen: f.pod, gone: f.podGone})
	}
	return all
}

// run tells about objects until ctx ends.
func (f *follower) run(ctx context.Context, w watched) {
	w.which.Namespace = f.Namespace
	inform(ctx, f.client, w.object, w.list, w.which, w.slim, cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(seen any, initial bool) { f.send(ctx, w.seen(seen.(client.Object), initial)) },
		UpdateFunc: func(_, seen any) { f.send(ctx, w.seen(seen.(client.Object), false)) },
		DeleteFunc: func(seen any) { f.send(ctx, w.gone(lastOf(seen))) },
	})
}

// lastOf is what was last seen of a deleted object.
func lastOf(seen any) client.Object {
	if unknown, ok := seen.(cache.DeletedFinalStateUnknown); ok {
		seen = unknown.Obj
	}
	return seen.(client.Object)
}

// inform calls handler for the objects of one type that the options choose, until ctx ends.
func inform(ctx context.Context, c client.WithWatch, object client.Object, list client.ObjectList, which client.ListOptions, slim func(client.Object), handler cache.ResourceEventHandler) {
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
		Transform: func(seen any) (any, error) {
			if o, ok := seen.(client.Object); ok {
				o.SetManagedFields(nil)
				if slim != nil {
					slim(o)
				}
			}
			return seen, nil
		},
		Handler: handler,
	})
	controller.RunWithContext(ctx)
}

func (f *follower) send(ctx context.Context, fact Fact) {
	if fact == (Fact{}) {
		return
	}
	fact.ID = f.ID
	send(ctx, f.facts, fact)
}

// send hands over a fact, unless ctx ends before it is taken.
func send(ctx context.Context, facts chan<- Fact, fact Fact) {
	select {
	case facts <- fact:
	case <-ctx.Done():
	}
}

// itself reads the followed object.
func (f *follower) itself(object client.Object, _ bool) Fact {
	status := f.kind.Status(object)
	return Fact{status: &status}
}

func (f *follower) itselfGone(last client.Object) Fact {
	status := f.kind.Deleted(f.Name, last)
	return Fact{status: &status}
}

// trial reads one of its trials.
func (f *follower) trial(object client.Object, initial bool) Fact {
	if !f.kind.Search.Has(object, f.UID) {
		return Fact{}
	}
	trial := f.kind.Search.Read(object)
	return Fact{trial: &trial, initial: initial}
}

func (f *follower) trialGone(last client.Object) Fact { return Fact{removed: last.GetName()} }

// pod reads one of its Pods.
func (f *follower) pod(object client.Object, _ bool) Fact {
	pod := podOf(object.(*corev1.Pod), f.kind.UnitLabel)
	return Fact{pod: &pod}
}

func (f *follower) podGone(last client.Object) Fact {
	pod := podOf(last.(*corev1.Pod), f.kind.UnitLabel)
	pod.Gone = true
	return Fact{pod: &pod}
}
