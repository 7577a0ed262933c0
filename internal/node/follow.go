// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/node/container"
	"diwan.dev/diwan/internal/node/containerlog"
)

// follower reads what a run writes: it times the log, feeds the observer, and
// bounds the file. One goroutine uses it.
type follower struct {
	worker *worker
	pod    *corev1.Pod
	spec   *corev1.Container
	entry  *entry
	id     container.ID
	run    container.Run
	log    *containerlog.Writer
	mounts []container.Mount
	cancel context.CancelFunc // ends the probes of the run
	ended  chan struct{}      // closed when the run's end is known

	observer Observer
	path     string // the observed file on the host; "" is the log
	offset   int64  // what the observer has
	lost     bool   // the observer failed and must be asked for its offset
	told     bool   // that the log cannot be bounded
	started  bool   // the event was sent
}

// observe asks whether the run is observed, and from where on.
func (f *follower) observe(ctx context.Context) error {
	observers := f.worker.node.cfg.Observers
	if observers == nil {
		return nil
	}
	o, err := observers.Observe(ctx, f.pod, f.spec.Name, f.id.Attempt)
	if err != nil || o == nil {
		return err
	}
	if f.offset, err = o.Offset(ctx); err != nil {
		return err
	}
	if path := o.Path(); path != "" {
		f.path = onHost(path, f.mounts)
	}
	f.observer = o
	return nil
}

// onHost is where a path of the container lies on the host: inside the mount
// that is nearest to it, or at the same place.
func onHost(path string, mounts []container.Mount) string {
	path = filepath.Clean(path)
	best, at := path, -1
	for _, m := range mounts {
		rel, err := filepath.Rel(m.Target, path)
		if err == nil && filepath.IsLocal(rel) && len(m.Target) > at {
			best, at = filepath.Join(m.Source, rel), len(m.Target)
		}
	}
	return best
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
			if err := f.read(ctx); err != nil && ctx.Err() == nil {
				w.warn("FailedObservation", err.Error())
			}
			f.announce()
		}
	}
}

// announce tells that a container runs, once it has lived for a second, or at
// once where each step is told.
func (f *follower) announce() {
	if !f.started && time.Since(f.run.Started()) > time.Second {
		f.started = true
		f.worker.node.event(f.pod, corev1.EventTypeNormal, "Started", "Container started: "+f.spec.Name)
	}
}

// complete reads the rest, has the observer make it durable, and reports the
// end. It tries until that succeeds or the node stops: an end is never reported
// before its observation is safe.
func (f *follower) complete(ctx context.Context) {
	for try := 0; ; try++ {
		err := f.read(ctx)
		if err == nil && f.observer != nil {
			err = f.observer.Finish(ctx)
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		f.lost = true
		f.worker.warn("FailedObservation", err.Error())
		pause := time.NewTimer(retryDelay(try))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
	end := f.terminated(f.run.Exit())
	f.worker.change(func() {
		e := f.entry
		e.running, e.started, e.ready, e.ending = time.Time{}, false, false, nil
		e.view.ended = end
		if e.unhealthy != nil && e.unhealthy.Reason != "" {
			e.view.ended.Reason = e.unhealthy.Reason
		}
		e.unhealthy = nil
		close(f.ended)
	})
}

// read takes what is new in the log and in the observed file.
func (f *follower) read(ctx context.Context) error {
	end, err := f.log.Size()
	if err != nil {
		return err
	}
	now := clock()
	if err := f.log.Mark(end, now); err != nil {
		return err
	}
	taken := end
	if f.observer != nil {
		source := f.path
		if source == "" {
			source = f.log.File().Name()
		}
		if err := f.feed(ctx, source, now); err != nil {
			return err
		}
		if f.path == "" {
			taken = f.offset
		}
	}
	err = f.log.Retain(taken, f.worker.node.cfg.KeepLog)
	if err != nil && !f.told {
		f.told = true
		f.worker.node.cfg.Log.Error(err, "cannot bound the log of a container", "log", f.log.File().Name())
	}
	return nil
}

// feed gives the observer what a file has behind its offset.
func (f *follower) feed(ctx context.Context, path string, now time.Time) error {
	if f.lost {
		offset, err := f.observer.Offset(ctx)
		if err != nil {
			return fmt.Errorf("cannot observe container %s: %w", f.spec.Name, err)
		}
		f.offset, f.lost = offset, false
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // not written yet
	}
	if err != nil {
		return fmt.Errorf("cannot observe container %s: %w", f.spec.Name, err)
	}
	defer file.Close()
	if f.path == "" {
		f.offset = max(f.offset, f.log.Start()) // what retention dropped is lost
	}
	if info, err := file.Stat(); err == nil && info.Size() <= f.offset {
		return nil
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := file.ReadAt(buffer, f.offset)
		if n > 0 {
			if err := f.observer.Write(ctx, f.offset, buffer[:n], now); err != nil {
				f.lost = true
				return fmt.Errorf("cannot observe container %s: %w", f.spec.Name, err)
			}
			f.offset += int64(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot observe container %s: %w", f.spec.Name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// discard forgets an interrupted run: its observation, and the observed file,
// so that the next run begins with nothing.
func (f *follower) discard(ctx context.Context) error {
	if f.observer == nil {
		return nil
	}
	if f.path != "" && strings.HasPrefix(f.path, f.worker.node.cfg.Dir) {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return f.observer.Discard(ctx)
}
