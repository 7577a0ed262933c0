// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/container"
)

// ending is the end of a run that was asked for.
type ending struct {
	mu    sync.Mutex
	at    time.Time   // when it is killed
	timer *time.Timer // kills it then
}

// end ends a run: the preStop hook, SIGTERM, and SIGKILL when the grace is over.
// Asked again, it can only get shorter. The lock of the worker is held.
func (w *worker) end(ctx context.Context, s stop) {
	e := w.containers[s.name]
	if e == nil || e.run == nil {
		return
	}
	at := clock().Add(s.grace)
	if e.ending != nil {
		e.ending.hasten(at)
		return
	}
	run, c, pod := e.run, containerOf(w.pod, s.name), w.pod
	e.ending = &ending{at: at}
	e.ending.timer = time.AfterFunc(s.grace, func() { w.kill(run) })
	if w.node.cfg.NormalEvents {
		w.node.event(pod, corev1.EventTypeNormal, "Killing", "Stopping container "+s.name)
	}
	timer := e.ending.timer
	w.tasks.Go(func() {
		defer timer.Stop()
		w.askToEnd(ctx, pod, c, run, s.grace)
		select {
		case <-run.Done():
		case <-ctx.Done():
		}
	})
}

// hasten moves the kill forward, never back.
func (g *ending) hasten(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.Before(g.at) {
		g.at = at
		g.timer.Reset(max(0, at.Sub(clock())))
	}
}

// askToEnd runs the preStop hook and sends the stop signal.
func (w *worker) askToEnd(ctx context.Context, pod *corev1.Pod, c *corev1.Container, run container.Run, grace time.Duration) {
	if l := c.Lifecycle; l != nil && l.PreStop != nil && grace > 0 {
		hook, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
		if err := w.hook(hook, pod, c, run, l.PreStop); err != nil && ctx.Err() == nil {
			w.warn("FailedPreStopHook", "PreStopHook failed: "+err.Error())
		}
	}
	if err := run.Signal(stopSignal(c)); err != nil {
		w.node.cfg.Log.V(1).Info("cannot ask a container to terminate", "error", err.Error())
	}
}

func (w *worker) kill(run container.Run) {
	if err := run.Kill(); err != nil {
		w.node.cfg.Log.Error(err, "cannot kill a container; retrying", "container", run.Spec().ID.String())
		time.AfterFunc(time.Second, func() { w.kill(run) })
	}
}

// stopSignal is the container's, or SIGTERM.
func stopSignal(c *corev1.Container) syscall.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return syscall.SIGTERM
	}
	switch *c.Lifecycle.StopSignal {
	case corev1.SIGINT:
		return syscall.SIGINT
	case corev1.SIGQUIT:
		return syscall.SIGQUIT
	case corev1.SIGHUP:
		return syscall.SIGHUP
	case corev1.SIGUSR1:
		return syscall.SIGUSR1
	case corev1.SIGUSR2:
		return syscall.SIGUSR2
	case corev1.SIGKILL:
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}
