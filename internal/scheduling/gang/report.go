// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// patience is how long after its latest Pod a group may lack Pods before that is
// reported: they are created one after another, and only the first of several
// events keeps its text.
const patience = 3 * time.Second

// phase returns a group's phase, given the nodes' total capacity.
func (g Group) phase(m members, all amounts) string {
	volcano := g.API == Volcano
	choose := func(coscheduling, other string) string {
		if volcano {
			return other
		}
		return coscheduling
	}
	switch {
	case m.succeeded >= g.Min && len(m.bound)+len(m.free) == 0:
		return choose("Finished", "Completed")
	case m.failed > 0 && m.there() < g.Min:
		return choose("Failed", "Unknown")
	case m.running+m.succeeded >= g.Min:
		return "Running"
	case len(m.bound)+m.succeeded >= g.Min:
		return choose("Scheduling", "Running")
	case m.placed():
		return choose("Scheduling", "Unknown")
	}
	if all.lacking(g.Resources) != "" {
		return "Pending"
	}
	// Who creates Pods for Volcano waits for it to say that they may come.
	return choose("Pending", "Inqueue")
}

// capacity is what all nodes have.
func (g *Groups) capacity() amounts {
	all := amounts{}
	for _, obj := range g.nodes.GetStore().List() {
		for name, q := range obj.(*corev1.Node).Status.Allocatable {
			all.addQuantity(name, q)
		}
	}
	return all
}

// Run writes the groups' status until ctx ends, and reports groups that do not
// get their Pods.
func (g *Groups) Run(ctx context.Context, recorder events.EventRecorder) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Key]())
	for _, endings := range g.endings {
		endings.Start(ctx.Done())
		defer endings.Shutdown()
	}
	ofPod := handler(func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			if key, ok := KeyOf(pod); ok {
				queue.Add(key)
			}
		}
	})
	follow := map[cache.SharedIndexInformer]cache.ResourceEventHandler{g.pods: ofPod}
	for _, done := range g.done {
		follow[done] = ofPod
	}
	for _, api := range apis {
		follow[g.objects[api]] = handler(func(obj any) {
			if o, ok := obj.(*unstructured.Unstructured); ok {
				queue.Add(Key{api, o.GetNamespace(), o.GetName()})
			}
		})
	}
	follow[g.nodes] = handler(func(any) { // what never fitted may do so now
		for _, obj := range g.objects[Volcano].GetStore().List() {
			o := obj.(*unstructured.Unstructured)
			if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Pending" {
				queue.Add(Key{Volcano, o.GetNamespace(), o.GetName()})
			}
		}
	})
	for informer, handle := range follow {
		registration, err := informer.AddEventHandler(handle)
		if err != nil {
			return // the informer has stopped
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		cache.WaitForCacheSync(ctx.Done(), registration.HasSynced)
	}
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	for {
		key, down := queue.Get()
		if down {
			return
		}
		after, err := g.report(ctx, key, recorder)
		switch {
		case err != nil && ctx.Err() == nil:
			klog.FromContext(ctx).Error(err, "Cannot report a PodGroup", "group", key)
			queue.AddRateLimited(key)
		case after > 0:
			queue.AddAfter(key, after)
			fallthrough
		default:
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

func handler(f func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    f,
		UpdateFunc: func(_, obj any) { f(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			f(obj)
		},
	}
}

// report writes one group's status, and returns when to look again, 0 for when
// something changes.
func (g *Groups) report(ctx context.Context, key Key, recorder events.EventRecorder) (time.Duration, error) {
	obj, ok, err := g.objects[key.API].GetStore().GetByKey(key.Namespace + "/" + key.Name)
	object, is := obj.(*unstructured.Unstructured)
	if err == nil && !ok {
		return g.orphans(key, recorder), nil
	}
	if err != nil || !is || object.GetDeletionTimestamp() != nil {
		return 0, err
	}
	group, m := read(key, object), g.members(key)
	before, _, _ := unstructured.NestedMap(object.Object, "status")
	after := maps.Clone(before)
	if after == nil {
		after = map[string]any{}
	}
	all := g.capacity()
	after["phase"] = group.phase(m, all)
	for name, n := range map[string]int{"running": m.running, "succeeded": m.succeeded, "failed": m.failed} {
		after[name] = int64(n)
	}
	if !equality.Semantic.DeepEqual(before, after) {
		patch, err := json.Marshal(map[string]any{"status": after})
		if err != nil {
			return 0, fmt.Errorf("cannot encode the status of %s: %w", key, err)
		}
		_, err = g.client.Resource(key.API).Namespace(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("cannot write the status of %s: %w", key, err)
		}
	}
	waits := group.waitsFor(m)
	if lack := all.lacking(group.Resources); lack != "" && !m.placed() {
		waits = fmt.Sprintf("%s can never fit on the nodes: it needs %s", key, lack)
	} else if m.there() == 0 {
		waits = ""
	}
	if waits == "" {
		return 0, nil
	}
	if wait := patience - time.Since(m.latest(group.Created)); wait > 0 {
		return wait, nil
	}
	recorder.Eventf(object, nil, corev1.EventTypeWarning, "Unschedulable", "Scheduling", "%s", waits)
	return 0, nil
}

// orphans reports to the Pods of a nonexistent group what they wait for, and
// returns when to check again.
func (g *Groups) orphans(key Key, recorder events.EventRecorder) time.Duration {
	m := g.members(key)
	if len(m.free) == 0 {
		return 0
	}
	if wait := patience - time.Since(m.latest(time.Time{})); wait > 0 {
		return wait
	}
	for _, pod := range m.free {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "Unschedulable", "Scheduling", "%s", missing(key))
	}
	return 0
}
