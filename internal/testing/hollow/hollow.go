// SPDX-License-Identifier: Apache-2.0

// Package hollow makes nodes that only pretend to run Pods, for tests and
// measurements of what happens around them.
//
// A hollow node is a Node object. A Pod that is bound to one is Running as soon
// as it is observed, with its own address, until it is deleted, when it is gone
// at once. To end it otherwise, the caller writes its status. Hollow nodes have
// the label [Label], which Pods can select.
package hollow

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Label is on each hollow node; its value is the name of the set.
const Label = "diwan.dev/hollow"

// Config configures the nodes.
type Config struct {
	Client kubernetes.Interface
	// Name is the name of the set; node i is called Name-i.
	Name string
	// Count is how many nodes there are.
	Count int
	// Capacity is what each of them has.
	Capacity corev1.ResourceList
	// Workers is how many Pods are served at once. Default 4.
	Workers int
}

// Start makes the nodes and serves them until stop is called, which removes
// them.
func Start(ctx context.Context, cfg Config) (stop func(), err error) {
	defer func() {
		if err != nil {
			cfg.remove()
		}
	}()
	for i := range cfg.Count {
		if err := create(ctx, cfg, cfg.node(i)); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &kubelets{Config: cfg, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())}
	shared := informers.NewSharedInformerFactory(cfg.Client, 0)
	s.pods = shared.Core().V1().Pods().Informer()
	enqueue := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok && s.mine(pod) {
			s.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	if _, err := s.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }}); err != nil {
		cancel()
		return nil, fmt.Errorf("cannot follow Pods: %w", err)
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	var running sync.WaitGroup
	for range max(1, cfg.Workers) {
		running.Go(func() {
			for s.next(ctx) {
			}
		})
	}
	return func() {
		cancel()
		s.queue.ShutDown()
		running.Wait()
		shared.Shutdown()
		cfg.remove()
	}, nil
}

// node is the name of one of the nodes.
func (c Config) node(i int) string { return fmt.Sprintf("%s-%d", c.Name, i) }

// remove deletes the nodes, as far as they are there.
func (c Config) remove() {
	for i := range c.Count {
		_ = c.Client.CoreV1().Nodes().Delete(context.Background(), c.node(i), metav1.DeleteOptions{})
	}
}

// create makes one node that is ready for Pods.
func create(ctx context.Context, cfg Config, name string) error {
	nodes := cfg.Client.CoreV1().Nodes()
	n, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{Label: cfg.Name, corev1.LabelHostname: name},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("cannot create node %s: %w", name, err)
	}
	n.Status.Capacity, n.Status.Allocatable = cfg.Capacity, cfg.Capacity
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Hollow", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}
	if n, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot write the status of node %s: %w", name, err)
	}
	n.Spec.Taints = nil // a new node is not ready by the API server's choice
	if _, err = nodes.Update(ctx, n, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot make node %s ready: %w", name, err)
	}
	return nil
}

// kubelets are those of all nodes.
type kubelets struct {
	Config
	pods  cache.SharedIndexInformer
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	addresses atomic.Uint32 // given out
}

// mine reports whether a Pod is on one of the nodes.
func (s *kubelets) mine(pod *corev1.Pod) bool {
	number, ok := strings.CutPrefix(pod.Spec.NodeName, s.Name+"-")
	i, err := strconv.Atoi(number)
	return ok && err == nil && i < s.Count
}

func (s *kubelets) next(ctx context.Context) bool {
	key, down := s.queue.Get()
	if down {
		return false
	}
	defer s.queue.Done(key)
	if err := s.serve(ctx, key); err != nil && ctx.Err() == nil {
		s.queue.AddRateLimited(key)
		return true
	}
	s.queue.Forget(key)
	return true
}

// serve starts or removes one Pod.
func (s *kubelets) serve(ctx context.Context, key types.NamespacedName) error {
	obj, ok, err := s.pods.GetStore().GetByKey(key.String())
	if err != nil || !ok {
		return err
	}
	pod := obj.(*corev1.Pod)
	pods := s.Client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		none := int64(0)
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	case pod.Status.Phase == corev1.PodPending:
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": s.running(pod)}); err != nil {
			return fmt.Errorf("cannot encode the status of Pod %s: %w", key, err)
		}
		_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another has its name
	}
	return err
}

// running is the status of a Pod that runs.
func (s *kubelets) running(pod *corev1.Pod) corev1.PodStatus {
	n := s.addresses.Add(1)
	address, now := fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	yes := true
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &yes, ContainerID: fmt.Sprintf("hollow://%s/%d", pod.UID, time.Now().UnixNano()),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}
