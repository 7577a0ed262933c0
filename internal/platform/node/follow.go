// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/containerlog"
)

// follower reads a run's output: it timestamps the log, feeds the observer,
// and truncates the file. Only one goroutine uses it.
type follower struct {
	worker  *worker
	pod     *corev1.Pod
	spec    *corev1.Container
	entry   *entry
	id      container.ID
	run     container.Run
	log     *containerlog.Writer
	mounts  []container.Mount
	place   place
	inImage bool
	cancel  context.CancelFunc // ends the probes of the run
	ended   chan struct{}      // closed when the run's end is known

	observer Observer // never nil once observe was called
	told     bool     // that the log cannot be bounded
	started  bool     // the event was sent
}

// observe asks whether the run is observed.
func (f *follower) observe(ctx context.Context) error {
	f.observer = unobserved{}
	observers := f.worker.node.cfg.Observers
	if observers == nil {
		return nil
	}
	o, err := observers.Observe(ctx, f.subject())
	if err != nil || o == nil {
		return err
	}
	f.observer = o
	return nil
}

// subject is the run as its observer sees it.
func (f *follower) subject() Subject {
	within := ""
	if f.inImage {
		within = f.worker.node.podPath(f.pod)
	}
	return Subject{
		Within: within,
		Pod:    f.pod, Container: f.spec.Name, Attempt: f.id.Attempt,
		Address:     f.worker.dialable(),
		Output:      f.log.File().Name(),
		OutputStart: f.log.Start,
		HostPath: func(path string) (string, bool) {
			dir, file := filepath.Split(filepath.Clean(path))
			f.share(path, dir)
			return f.located(filepath.Join(dir, file))
		},
		HostDirectory: func(path string) (string, bool) {
			f.share(path, path)
			return f.located(path)
		},
		Warn: func(message string) { f.worker.warn("MetricsCollection", message) },
	}
}

// located is where a path of the container lies on the host, and whether it is the
// Pod's own.
func (f *follower) located(path string) (string, bool) {
	path, _ = onHost(path, f.mounts)
	return path, strings.HasPrefix(path, f.worker.node.podPath(f.pod)+string(filepath.Separator))
}

// share mounts a directory of the Pod at dir if the container runs in an image and
// path is in no volume: this process must not follow paths within an image.
func (f *follower) share(path, dir string) {
	if _, mounted := onHost(path, f.mounts); mounted || !f.inImage {
		return
	}
	dir = filepath.Clean(dir)
	if dir == "/" {
		f.worker.warn("MetricsCollection", fmt.Sprintf("%s cannot be read: in an image, put it in a directory below /", path))
		dir = path // an empty directory in its place
	}
	source := f.worker.node.podPath(f.pod, "observed", f.id.Name+strings.ReplaceAll(dir, "/", "-"))
	if err := shareDir(source); err != nil {
		f.worker.warn("MetricsCollection", err.Error())
		return
	}
	f.mounts = append(f.mounts, container.Mount{Source: source, Target: dir})
}

// shareDir makes a directory in which any user may write.
func shareDir(path string) error {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return fmt.Errorf("cannot make a directory for what is observed: %w", err)
	}
	return os.Chmod(path, 0o777|os.ModeSticky) // despite the umask
}

// startedMessage says that the container runs, and in what.
func (f *follower) startedMessage() string {
	if f.place.runtime == "" {
		return "Container started: " + f.spec.Name
	}
	return fmt.Sprintf("Container started: %s, %s", f.spec.Name, f.place)
}

// onHost is where a path of the container lies on the host: inside the mount
// that is nearest to it, or, if there is none, at the same place. What is in a volume of
// an image is nowhere, and the path that of no file.
func onHost(path string, mounts []container.Mount) (host string, mounted bool) {
	path = filepath.Clean(path)
	best, at := path, -1
	for _, m := range mounts {
		rel, err := filepath.Rel(m.Target, path)
		if err == nil && filepath.IsLocal(rel) && len(m.Target) > at {
			best, at = filepath.Join(m.Source, rel), len(m.Target)
			if len(m.Layers) > 0 {
				best = filepath.Join(os.DevNull, best)
			}
		}
	}
	return best, at >= 0
}

// begin makes the run the container's present one.
func (f *follower) begin(run container.Run) {
	f.run = run
	f.id = run.Spec().ID
	w, e := f.worker, f.entry
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.ended = cancel, make(chan struct{})
	w.change(func() {
		e.run, e.done = run, f.ended
		e.running, e.starting, e.ending, e.unhealthy = run.Started(), false, nil, nil
		e.started = f.spec.StartupProbe == nil && (f.spec.Lifecycle == nil || f.spec.Lifecycle.PostStart == nil)
		e.ready = f.spec.ReadinessProbe == nil
	})
	if c := f.spec; c.Lifecycle != nil || c.StartupProbe != nil || c.ReadinessProbe != nil || c.LivenessProbe != nil {
		w.tasks.Go(func() { w.attend(ctx, f.pod, c, e, run) })
	}
}

// follow reads until the run has ended, and then reports its end.
func (w *worker) follow(ctx context.Context, f *follower) {
	defer f.log.Close()
	defer f.observer.Close()
	defer f.cancel()
	tick := time.NewTicker(w.node.cfg.ReadInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.run.Done():
			f.complete(ctx)
			return
		case <-tick.C:
			if err := f.read(ctx, f.observer.Look); err != nil && ctx.Err() == nil {
				w.warn("FailedObservation", err.Error())
			}
			f.announce()
		}
	}
}

// announce reports that a container is running, once it has run for a second,
// or at once if each step is reported.
func (f *follower) announce() {
	if !f.started && time.Since(f.run.Started()) > time.Second {
		f.started = true
		f.worker.node.event(f.pod, corev1.EventTypeNormal, "Started", f.startedMessage())
	}
}

// complete reads the rest, has the observer make it durable, and reports the
// end. It tries until that succeeds or the node stops: an end is never reported
// before its observation is safe.
func (f *follower) complete(ctx context.Context) {
	for try := 0; ; try++ {
		err := f.read(ctx, f.observer.Finish)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		f.worker.warn("FailedObservation", err.Error())
		pause := time.NewTimer(retryDelay(try))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
	exit := f.run.Exit()
	end := f.terminated(exit)
	f.worker.change(func() {
		e := f.entry
		e.running, e.started, e.ready, e.ending = time.Time{}, false, false, nil
		e.view.ended = end
		e.used.add(exit)
		if e.unhealthy != nil && e.unhealthy.Reason != "" {
			e.view.ended.Reason = e.unhealthy.Reason
		}
		e.unhealthy = nil
		close(f.ended)
	})
}

// read timestamps new output in the log, notifies the observer, and truncates
// the log.
func (f *follower) read(ctx context.Context, look func(context.Context, time.Time) error) error {
	end, err := f.log.Size()
	if err != nil {
		return err
	}
	now := clock()
	if err := f.log.Mark(end, now); err != nil {
		return err
	}
	if err := look(ctx, now); err != nil {
		return fmt.Errorf("cannot observe container %s: %w", f.spec.Name, err)
	}
	err = f.log.Retain(min(end, f.observer.Needs()), f.worker.node.cfg.KeepLog)
	if err != nil && !f.told {
		f.told = true
		f.worker.node.cfg.Log.Error(err, "cannot truncate the log of a container", "log", f.log.File().Name())
	}
	return nil
}
