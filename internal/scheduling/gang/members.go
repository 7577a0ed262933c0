// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/client-go/tools/cache"
)

// index finds Pods by their group.
const index = "gang"

// Groups knows the PodGroups of a cluster and their Pods.
type Groups struct {
	client     dynamic.Interface
	objects    map[schema.GroupVersionResource]cache.SharedIndexInformer
	pods       cache.SharedIndexInformer
	done       []cache.SharedIndexInformer // Pods that have ended, each in one
	endings    []informers.SharedInformerFactory
	priorities schedulinglisters.PriorityClassLister
	nodes      cache.SharedIndexInformer

	mu      sync.Mutex
	known   map[Key]known              // groups as they were read last
	held    map[Key]map[types.UID]bool // Pods that hold a place, and are not seen bound
	nowhere map[Key]map[types.UID]bool // Pods that found no node when they were tried last
}

// NewGroups adds what it needs to the scheduler's own informers: of Pods that
// have not ended, and of objects of any kind. They are the caller's to start;
// Run starts the rest.
func NewGroups(kube kubernetes.Interface, client dynamic.Interface, shared informers.SharedInformerFactory, objects dynamicinformer.DynamicSharedInformerFactory) (*Groups, error) {
	g := &Groups{
		client:     client,
		objects:    map[schema.GroupVersionResource]cache.SharedIndexInformer{},
		pods:       shared.Core().V1().Pods().Informer(),
		nodes:      shared.Core().V1().Nodes().Informer(),
		priorities: shared.Scheduling().V1().PriorityClasses().Lister(),
		known:      map[Key]known{},
		held:       map[Key]map[types.UID]bool{},
		nowhere:    map[Key]map[types.UID]bool{},
	}
	for _, api := range apis {
		g.objects[api] = objects.ForResource(api).Informer()
	}
	for _, selector := range endedSelectors {
		endings := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(slim), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = selector
			o.FieldSelector = fields.AndSelectors(
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodPending)),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodRunning))).String()
		}))
		g.endings, g.done = append(g.endings, endings), append(g.done, endings.Core().V1().Pods().Informer())
	}
	for _, pods := range append([]cache.SharedIndexInformer{g.pods}, g.done...) {
		if err := pods.AddIndexers(cache.Indexers{index: byGroup}); err != nil {
			return nil, fmt.Errorf("cannot index Pods by their group: %w", err)
		}
	}
	_, err := g.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				g.letGo(pod)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				g.letGo(pod)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot follow Pods: %w", err)
	}
	return g, nil
}

// endedSelectors are the labels of Pods that are followed beyond their end. The
// annotations of Volcano's groups cannot be selected: of those it is the Pods of
// training jobs.
var endedSelectors = []string{coschedulingLabel, jobLabel + ",!" + coschedulingLabel}

// slim reduces a finished Pod to what is counted.
func slim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	ended := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	switch key, grouped := KeyOf(pod); {
	case grouped && key.API == Coscheduling:
		ended.Labels = map[string]string{coschedulingLabel: key.Name}
	case grouped:
		ended.Annotations = map[string]string{volcanoAnnotation: key.Name}
	}
	return ended, nil
}

func byGroup(obj any) ([]string, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		if key, ok := KeyOf(pod); ok {
			return []string{key.index()}, nil
		}
	}
	return nil, nil
}

func (k Key) index() string { return k.API.Group + "/" + k.Namespace + "/" + k.Name }

// known is a group, and the object it was read from.
type known struct {
	object *unstructured.Unstructured
	group  Group
}

// group reads a group from the cache. The queue asks at each comparison, so that
// each object of the cache, which is never changed, is read once.
func (g *Groups) group(key Key) (Group, bool) {
	obj, ok, err := g.objects[key.API].GetStore().GetByKey(key.Namespace + "/" + key.Name)
	object, is := obj.(*unstructured.Unstructured)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || !ok || !is {
		delete(g.known, key)
		return Group{}, false
	}
	if g.known[key].object != object {
		g.known[key] = known{object, read(key, object)}
	}
	return g.known[key].group, true
}

// members reads a group's Pods from the cache.
func (g *Groups) members(key Key) members {
	var m members
	live, _ := g.pods.GetIndexer().ByIndex(index, key.index())
	for _, obj := range live {
		pod := obj.(*corev1.Pod)
		switch {
		case pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName == "":
			m.free = append(m.free, pod)
		default:
			m.bound = append(m.bound, pod)
			if pod.Status.Phase == corev1.PodRunning {
				m.running++
			}
		}
	}
	for _, done := range g.done {
		ended, _ := done.GetIndexer().ByIndex(index, key.index())
		for _, obj := range ended {
			switch obj.(*corev1.Pod).Status.Phase {
			case corev1.PodSucceeded:
				m.succeeded++
			case corev1.PodFailed:
				m.failed++
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.held = len(g.held[key])
	for _, pod := range m.free {
		if g.nowhere[key][pod.UID] {
			m.nowhere = append(m.nowhere, pod.UID)
		}
	}
	return m
}

// hold notes that a Pod holds a place.
func (g *Groups) hold(key Key, pod types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	put(g.held, key, pod)
	take(g.nowhere, key, pod)
}

// foundNone notes that a Pod found no node.
func (g *Groups) foundNone(key Key, pod types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	put(g.nowhere, key, pod)
}

// letGo notes that a Pod holds no place any more, or is seen bound.
func (g *Groups) letGo(pod *corev1.Pod) {
	key, ok := KeyOf(pod)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	take(g.held, key, pod.UID)
	take(g.nowhere, key, pod.UID)
}

func put(sets map[Key]map[types.UID]bool, key Key, pod types.UID) {
	if sets[key] == nil {
		sets[key] = map[types.UID]bool{}
	}
	sets[key][pod] = true
}

func take(sets map[Key]map[types.UID]bool, key Key, pod types.UID) {
	delete(sets[key], pod)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// holding are the Pods of a group that hold places.
func (g *Groups) holding(key Key) []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]types.UID, 0, len(g.held[key]))
	for pod := range g.held[key] {
		all = append(all, pod)
	}
	return all
}
