// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/internal/platform/node/volume"
)

// worker takes care of one Pod from its binding to its end.
//
// Only its loop decides and writes the status. Slow operations (preparing,
// starting, terminating) run in goroutines of the worker, which change the
// views under the lock and wake the loop.
type worker struct {
	node  *Node
	since time.Time
	poked chan struct{}
	tasks sync.WaitGroup

	removed bool // the informer has told that the Pod is not in the API any more; under the node's lock

	mu         sync.Mutex
	pod        *corev1.Pod
	absent     bool // the Pod is no longer in the API
	containers map[string]*entry
	sandbox    network.Sandbox
	prepared   bool
	preparing  bool
	prepareAt  time.Time // no earlier
	prepareTry int
	failure    *failure
	handler    string            // of the Pod's RuntimeClass
	relabelled bool              // volumes that show labels are stale
	measureAt  time.Time         // when the disk may be measured again; for watchDisk alone
	told       map[string]string // last warning by reason, not to repeat it
	inherited  []inherited       // runs of an earlier node, before run
}

// entry is a container of the Pod, with its present run.
type entry struct {
	view
	attempts int // the number of the next run
	run      container.Run
	ending   *ending
	used     used          // by the runs that have ended
	done     chan struct{} // closed when the run has ended and its output is complete
	retries  int
}

func newWorker(n *Node, pod *corev1.Pod, runs []container.Run) *worker {
	w := &worker{
		node: n, pod: pod, since: clock(), poked: make(chan struct{}, 1),
		containers: map[string]*entry{}, told: map[string]string{},
	}
	w.know(pod)
	w.remember()
	w.adoptAll(runs)
	return w
}

// know makes an entry for each container that has none: ephemeral ones come later.
func (w *worker) know(pod *corev1.Pod) {
	for _, c := range containersOf(pod) {
		if w.containers[c.Name] == nil {
			w.containers[c.Name] = &entry{}
		}
	}
}

// remember restores what the API says about earlier containers: their state
// on disk is gone once their end was reported.
func (w *worker) remember() {
	for _, list := range [][]corev1.ContainerStatus{w.pod.Status.InitContainerStatuses, w.pod.Status.ContainerStatuses, w.pod.Status.EphemeralContainerStatuses} {
		for _, s := range list {
			e := w.containers[s.Name]
			if e == nil {
				continue
			}
			e.restarts, e.id, e.imageID = s.RestartCount, s.ContainerID, s.ImageID
			e.attempts = w.node.nextAttempt(w.pod, s.Name)
			e.previous = s.LastTerminationState.Terminated
			switch {
			case s.State.Terminated != nil:
				e.view.ended = s.State.Terminated
			case s.State.Waiting != nil && e.previous != nil:
				e.view.ended, e.previous = e.previous, nil
				e.backoff = int(min(s.RestartCount, 10))
			}
		}
	}
}

// poke makes the loop look again.
func (w *worker) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// change does something under the lock and pokes the loop.
func (w *worker) change(f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	w.poke()
}

// current is the Pod as it is known.
func (w *worker) current() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

// update takes a newer Pod from the API; an older one says nothing new.
func (w *worker) update(pod *corev1.Pod) {
	w.change(func() {
		if newer(pod.ResourceVersion, w.pod.ResourceVersion) {
			w.relabelled = w.relabelled || !maps.Equal(pod.Labels, w.pod.Labels) || !maps.Equal(pod.Annotations, w.pod.Annotations)
			w.pod = pod
			w.know(pod)
		}
	})
}

func (w *worker) gone() {
	w.change(func() { w.absent = true })
}

// neverAgain is newer than any version: for a Pod that is not in the API.
var neverAgain = strconv.FormatUint(math.MaxUint64, 10)

// version is the last version of the Pod that is known.
func (w *worker) version() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.absent {
		return neverAgain
	}
	return w.pod.ResourceVersion
}

// newer compares resource versions, which grow on one API server.
func newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX != nil || errY != nil || x > y
}

// run is the worker's loop. It returns when nothing of the Pod is left, or
// when the node stops.
func (w *worker) run(ctx context.Context) {
	tasks, cancel := context.WithCancel(ctx)
	defer w.tasks.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	if len(w.inherited) > 0 {
		w.tasks.Go(func() { w.takeOver(tasks) })
	}
	var dirty time.Time // since when a status waits to be written
	for ctx.Err() == nil {
		p := w.decide()
		w.act(tasks, p)
		wake := p.wake
		if w.differs(&p.status) {
			if dirty.IsZero() {
				dirty = clock()
			}
			switch due := dirty.Add(w.node.cfg.StatusHold); {
			case p.over || !due.After(clock()):
				if w.write(ctx, p.status) {
					dirty = time.Time{}
					w.poke() // the Pod may be newer now
				} else {
					wake = soonest(wake, clock().Add(time.Second))
				}
			default:
				wake = soonest(wake, due)
			}
		} else {
			dirty = time.Time{}
			if p.over && w.finish(ctx) {
				return
			}
		}
		w.sleep(ctx, timer, wake)
	}
	w.leave()
}

// sleep waits for a poke, for the time wake, or for the end.
func (w *worker) sleep(ctx context.Context, timer *time.Timer, wake time.Time) {
	var alarm <-chan time.Time
	if !wake.IsZero() {
		timer.Reset(max(0, wake.Sub(clock())))
		alarm = timer.C
	}
	select {
	case <-w.poked:
	case <-alarm:
	case <-ctx.Done():
	}
}

func soonest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// decide looks and decides.
func (w *worker) decide() plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := observed{
		now: clock(), since: w.since, prepared: w.prepared, failure: w.failure,
		containers: make(map[string]*view, len(w.containers)),
	}
	if w.sandbox.IP.IsValid() {
		o.podIP = w.sandbox.IP.String()
		o.hostIP = w.node.hostIP()
	}
	for name, e := range w.containers {
		v := e.view
		o.containers[name] = &v
	}
	pod := w.pod
	if w.absent && pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy() // it was force-deleted: none of its processes may continue
		pod.DeletionTimestamp = stamp(o.now)
	}
	p := decide(pod, o)
	w.failure = p.failure
	return p
}

// act starts what the plan requires.
func (w *worker) act(ctx context.Context, p plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.prepare && !w.preparing && !w.prepareAt.After(clock()) {
		w.preparing = true
		pod := w.pod
		w.tasks.Go(func() { w.prepare(ctx, pod) })
	}
	if w.relabelled && w.prepared {
		w.relabelled = false
		shown := withAddresses(w.pod, w.sandbox, w.node.hostIP())
		w.tasks.Go(func() {
			if err := w.node.volumes.Update(ctx, shown); err != nil {
				w.warn("FailedMount", err.Error())
			}
		})
	}
	for _, name := range p.start {
		e := w.containers[name]
		e.starting, e.waiting = true, nil
		pod := w.pod
		w.tasks.Go(func() { w.start(ctx, pod, name, e) })
	}
	for _, s := range p.stop {
		w.end(ctx, s)
	}
}

// differs reports whether a status has changed.
func (w *worker) differs(s *corev1.PodStatus) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.absent && !apiequality.Semantic.DeepEqual(s, &w.pod.Status)
}

// prepare makes network and volumes.
func (w *worker) prepare(ctx context.Context, pod *corev1.Pod) {
	sandbox, handler, err := w.furnish(ctx, pod)
	if ctx.Err() != nil {
		return
	}
	w.change(func() {
		w.preparing = false
		if err == nil {
			w.prepared, w.sandbox, w.handler = true, sandbox, handler
			return
		}
		if sandbox.IP.IsValid() {
			w.sandbox = sandbox
		}
		w.prepareAt = clock().Add(retryDelay(w.prepareTry))
		w.prepareTry++
		at := w.prepareAt
		time.AfterFunc(time.Until(at), w.poke)
	})
	pending := (*volume.PendingError)(nil)
	switch port := hostPort(pod); {
	case errors.As(err, &pending):
		w.warn("FailedMount", err.Error())
	case err != nil:
		w.warn("FailedCreatePodSandBox", err.Error())
	case port != 0 && sandbox.NetnsPath != "":
		w.warn("Degraded", fmt.Sprintf("hostPort %d is not opened on this machine: use kubectl port-forward, a Service of type NodePort, or hostNetwork", port))
	default:
		w.collision(pod)
	}
}

// hostPort is the first port of the host that a Pod asks for, or 0.
func hostPort(pod *corev1.Pod) int32 {
	for _, c := range containersOf(pod) {
		for _, p := range c.Ports {
			if p.HostPort != 0 && !pod.Spec.HostNetwork {
				return p.HostPort
			}
		}
	}
	return 0
}

// retryDelay is the pause after the nth failure: 1 s doubling to 30 s.
func retryDelay(n int) time.Duration { return min(time.Second<<min(n, 5), 30*time.Second) }

// furnish acquires network and volumes, and finds the handler of the Pod's RuntimeClass.
func (w *worker) furnish(ctx context.Context, pod *corev1.Pod) (network.Sandbox, string, error) {
	handler, err := w.node.handlerOf(ctx, pod)
	if err != nil {
		return network.Sandbox{}, "", err
	}
	sandbox, err := w.node.cfg.Network.Acquire(ctx, string(pod.UID), pod.Spec.HostNetwork)
	if err != nil {
		return sandbox, "", fmt.Errorf("cannot give the Pod a network: %w", err)
	}
	if err := w.node.writeRecord(pod, sandbox); err != nil {
		return sandbox, "", err
	}
	addressed := withAddresses(pod, sandbox, w.node.hostIP())
	if err := w.node.volumes.Prepare(ctx, addressed); err != nil {
		return sandbox, "", err
	}
	return sandbox, handler, w.node.nameFiles(addressed, sandbox)
}

// nameFiles creates a Pod's files for name resolution: hosts, and resolv.conf
// if the machine's own does not work for it.
func (n *Node) nameFiles(pod *corev1.Pod, sandbox network.Sandbox) error {
	if pod.Spec.HostNetwork {
		return nil
	}
	if n.cfg.Hosts != nil {
		if err := n.cfg.Hosts.Add(pod, sandbox.Bind, n.podPath(pod, "hosts")); err != nil {
			return err
		}
	}
	nameserver := n.cfg.Network.Nameserver()
	if pod.Spec.DNSConfig == nil && !nameserver.IsValid() {
		return nil
	}
	host, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read this machine's resolv.conf: %w", err)
	}
	text := network.ResolvConf(pod, nameserver, host)
	if text == nil {
		return nil
	}
	if err := os.WriteFile(n.podPath(pod, "resolv.conf"), text, 0o644); err != nil {
		return fmt.Errorf("cannot write the Pod's resolv.conf: %w", err)
	}
	return nil
}

// withAddresses is the Pod as its own programs see it: status.podIP is the
// address that they can listen on.
func withAddresses(pod *corev1.Pod, s network.Sandbox, hostIP string) *corev1.Pod {
	p := *pod
	p.Status.PodIP, p.Status.HostIP = s.Bind.String(), hostIP
	p.Status.PodIPs, p.Status.HostIPs = []corev1.PodIP{{IP: p.Status.PodIP}}, []corev1.HostIP{{IP: hostIP}}
	return &p
}

// warn reports a problem to the user, once while it stays the same.
func (w *worker) warn(reason, message string) { w.tell(corev1.EventTypeWarning, reason, message) }

// tell reports something to the user, once while it stays the same.
func (w *worker) tell(kind, reason, message string) {
	w.mu.Lock()
	pod, again := w.pod, w.told[reason] == message
	w.told[reason] = message
	w.mu.Unlock()
	if !again {
		w.node.event(pod, kind, reason, message)
	}
}

// podPath is a path in the Pod's state.
func (n *Node) podPath(pod *corev1.Pod, elem ...string) string {
	return filepath.Join(append([]string{n.cfg.Dir, "pods", string(pod.UID)}, elem...)...)
}

func (n *Node) hostIP() string { return n.cfg.Network.HostIP().String() }
