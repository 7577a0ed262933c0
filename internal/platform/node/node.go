// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listerscorev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/process"
	"diwan.dev/diwan/internal/platform/node/sandbox"
	"diwan.dev/diwan/internal/platform/node/volume"
)

// Node runs the Pods that are bound to it. Make one with New and run it once.
type Node struct {
	cfg     Config
	objects *volume.Objects
	volumes *volume.Manager
	classes classes
	passed  map[string]string
	machine machine
	gpus    gpus
	starts  chan struct{} // holds a token for each container that is being started

	recorder record.EventRecorder
	services listerscorev1.ServiceLister

	mu        sync.Mutex
	workers   map[types.UID]*worker
	ended     map[types.UID]string // the last version that the worker knew, of each Pod of the API that has none any more
	recovered map[types.UID][]container.Run
	stopping  bool
	living    sync.WaitGroup // workers
}

// New makes a node.
func New(cfg Config) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Runtimes == nil {
		runs := process.DefaultConfig(filepath.Join(cfg.Dir, "pods"))
		runs.Keeper = cfg.Self
		processes, err := process.New(runs)
		if err != nil {
			return nil, err
		}
		cfg.Runtimes = map[string]container.Runtime{image.RuntimeProcess: processes}
		if cfg.Puller != nil {
			if cfg.NoImages = sandbox.Allowed(); cfg.NoImages == nil {
				boxes := sandbox.DefaultConfig(filepath.Join(cfg.Dir, "sandboxes"))
				boxes.Keeper = cfg.Self
				if cfg.Runtimes[image.RuntimeImage], err = sandbox.New(boxes); err != nil {
					return nil, err
				}
			}
		}
	}
	n := &Node{
		cfg:       cfg,
		objects:   volume.NewObjects(cfg.Client),
		passed:    passed(os.Environ(), cfg.PassEnv),
		machine:   measure(cfg.Dir),
		starts:    make(chan struct{}, cfg.StartParallel),
		workers:   map[types.UID]*worker{},
		ended:     map[types.UID]string{},
		recovered: map[types.UID][]container.Run{},
	}
	n.gpus.free = n.machine.gpus
	n.classes.find = cfg.RuntimeClassHandler
	if n.classes.find == nil {
		n.classes.find = n.askRuntimeClass
	}
	volumes := volume.DefaultConfig(cfg.Dir, cfg.Client)
	volumes.Objects, volumes.RootCA, volumes.Allocatable = n.objects, cfg.RootCA, n.allocatable()
	if cfg.Puller != nil {
		volumes.Image = n.imageVolume
	}
	n.volumes = volume.New(volumes)
	return n, nil
}

// Run runs the node: it adopts what an earlier node left, registers itself, and
// runs Pods until ctx is done. Then it terminates the containers (see
// Config.StopGrace and Config.LeaveRunning) and returns nil. An error means that
// the node could not start.
func (n *Node) Run(ctx context.Context) error {
	events := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: n.cfg.Client.CoreV1().Events("")})
	defer events.Shutdown()
	n.recorder = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: n.cfg.NodeName})

	wait, err := n.takeUp(ctx)
	defer wait()
	if err != nil && ctx.Err() == nil {
		return err
	}
	var background sync.WaitGroup
	background.Go(func() { n.renew(ctx) })
	background.Go(func() { n.watchDisk(ctx) })
	background.Go(func() { n.watchImages(ctx) })
	background.Go(func() {
		n.volumes.Run(ctx, func(err error) { n.cfg.Log.Error(err, "cannot refresh volumes") })
	})
	<-ctx.Done()
	n.mu.Lock()
	n.stopping = true // no worker begins any more
	n.mu.Unlock()
	n.living.Wait()
	background.Wait()
	n.reportStopped(context.WithoutCancel(ctx))
	return n.closeRuntimes()
}

// takeUp starts the node. wait waits for what it started.
func (n *Node) takeUp(ctx context.Context) (wait func(), err error) {
	if err := n.recover(ctx); err != nil {
		return func() {}, err
	}
	if err := n.register(ctx); err != nil {
		return func() {}, err
	}
	wait, err = n.startInformers(ctx)
	if err == nil {
		n.removeUnknown(ctx)
	}
	return wait, err
}

// startInformers follows this node's Pods, and Services. wait waits for the end
// of the informers.
func (n *Node) startInformers(ctx context.Context) (wait func(), err error) {
	mine := informers.NewSharedInformerFactoryWithOptions(n.cfg.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.cfg.NodeName).String()
		}), informers.WithTransform(forgetManagers))
	all := informers.NewSharedInformerFactoryWithOptions(n.cfg.Client, 0, informers.WithTransform(forgetManagers))
	services := all.Core().V1().Services()
	n.services = services.Lister()
	serviceInformer := services.Informer()
	all.Start(ctx.Done())
	wait = func() { all.Shutdown() }
	if !cache.WaitForCacheSync(ctx.Done(), serviceInformer.HasSynced) {
		return wait, errors.Join(errors.New("cannot follow Services"), ctx.Err())
	}
	pods := mine.Core().V1().Pods().Informer()
	handler, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.podChanged(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { n.podChanged(ctx, o.(*corev1.Pod)) },
		DeleteFunc: n.podGone,
	})
	if err != nil {
		return wait, fmt.Errorf("cannot follow Pods: %w", err)
	}
	mine.Start(ctx.Done())
	wait = func() { mine.Shutdown(); all.Shutdown() }
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return wait, errors.Join(errors.New("cannot follow Pods"), ctx.Err())
	}
	return wait, nil
}

// forgetManagers drops the part of an object that nobody here reads.
func forgetManagers(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}

// podChanged passes a Pod to its worker, and creates one for a new Pod. The
// update may be older than what the worker wrote before it was done: that Pod
// must not run again.
func (n *Node) podChanged(ctx context.Context, pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.workers[pod.UID]; w != nil {
		w.update(pod)
		return
	}
	if last, ok := n.ended[pod.UID]; ok && !newer(pod.ResourceVersion, last) {
		return
	}
	delete(n.ended, pod.UID)
	runs := n.recovered[pod.UID]
	delete(n.recovered, pod.UID)
	if n.stopping || isFinal(pod.Status.Phase) && len(runs) == 0 && pod.DeletionTimestamp == nil {
		return
	}
	w := newWorker(n, pod, runs)
	n.workers[pod.UID] = w
	n.living.Go(func() {
		w.run(ctx)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.workers, pod.UID)
		if !w.removed {
			n.ended[pod.UID] = w.version()
		}
	})
}

// podGone tells a worker that its Pod no longer exists.
func (n *Node) podGone(o any) {
	if tomb, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tomb.Obj
	}
	if pod, ok := o.(*corev1.Pod); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.ended, pod.UID)
		if w := n.workers[pod.UID]; w != nil {
			w.removed = true
			w.gone()
		}
	}
}

// Pods returns the Pods that this node works on.
func (n *Node) Pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, w := range n.allWorkers() {
		pods = append(pods, w.current())
	}
	return pods
}

func (n *Node) allWorkers() []*worker {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.workers))
}

// event reports something about a Pod to its user.
func (n *Node) event(pod *corev1.Pod, kind, reason, message string) {
	if n.recorder != nil {
		n.recorder.Event(pod, kind, reason, message)
	}
}

func (n *Node) closeRuntimes() error {
	var errs []error
	for _, r := range n.cfg.Runtimes {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// classes remembers the handlers of RuntimeClasses, which cannot change.
type classes struct {
	find  func(ctx context.Context, class string) (string, error)
	known sync.Map
}

func (n *Node) askRuntimeClass(ctx context.Context, class string) (string, error) {
	object, err := n.cfg.Client.NodeV1().RuntimeClasses().Get(ctx, class, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return object.Handler, nil
}

// clock is the node's time. It is a function so that nothing else reads it.
func clock() time.Time { return time.Now() }
