// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/containerlog"
	"diwan.dev/diwan/internal/platform/node/network"
)

// podRecord is what a node must know about a Pod that only an earlier node
// saw.
type podRecord struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Sandbox   network.Sandbox `json:"sandbox"`
}

// writeRecord stores the record of a Pod, before anything of the Pod runs.
func (n *Node) writeRecord(pod *corev1.Pod, sandbox network.Sandbox) error {
	if sandbox.NetnsPath != "" {
		sandbox.NetnsPath = "own" // the path itself means nothing to a later node
	}
	text, err := json.Marshal(podRecord{pod.Namespace, pod.Name, sandbox})
	if err != nil {
		return err
	}
	path := n.podPath(pod, "pod.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return fmt.Errorf("cannot save the state of the Pod: %w", err)
	}
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, text) {
		return nil
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("cannot save the state of the Pod: %w", err)
	}
	return nil
}

// recover finds what an earlier node left.
func (n *Node) recover(ctx context.Context) error {
	for _, r := range n.cfg.Runtimes {
		runs, err := r.Recover(ctx)
		if err != nil {
			return fmt.Errorf("cannot adopt the containers of an earlier node: %w", err)
		}
		for _, run := range runs {
			uid := types.UID(run.Spec().ID.Pod)
			n.recovered[uid] = append(n.recovered[uid], run)
		}
	}
	used := map[string]network.Sandbox{}
	for uid, record := range n.records() {
		if record.Sandbox.IP.IsValid() {
			used[uid] = record.Sandbox
		}
	}
	if err := n.cfg.Network.Restore(used); err != nil {
		return fmt.Errorf("cannot adopt the networks of an earlier node: %w", err)
	}
	return nil
}

// records reads the records of all Pods on disk; an unreadable one counts as
// empty.
func (n *Node) records() map[string]podRecord {
	records := map[string]podRecord{}
	dirs, _ := os.ReadDir(filepath.Join(n.cfg.Dir, "pods"))
	for _, dir := range dirs {
		if !dir.IsDir() {
			continue
		}
		uid := dir.Name()
		var r podRecord
		if text, err := os.ReadFile(filepath.Join(n.cfg.Dir, "pods", uid, "pod.json")); err == nil {
			json.Unmarshal(text, &r)
		}
		records[uid] = r
	}
	return records
}

// removeUnknown ends what belongs to no Pod any more: it was deleted while no
// node was there.
func (n *Node) removeUnknown(ctx context.Context) {
	known := map[string]bool{}
	for _, w := range n.allWorkers() {
		known[string(w.current().UID)] = true
	}
	n.mu.Lock()
	left := n.recovered
	n.recovered = map[types.UID][]container.Run{}
	n.mu.Unlock()
	for uid := range n.records() {
		if !known[uid] {
			runs := left[types.UID(uid)]
			n.living.Go(func() { n.removePod(uid, runs) })
		}
	}
}

// removePod ends the runs of a Pod that is gone and removes all that it had.
func (n *Node) removePod(uid string, runs []container.Run) {
	for _, run := range runs {
		n.interrupt(run, 0, run.Spec().ID.Name)
		if err := run.Remove(); err != nil {
			n.cfg.Log.Error(err, "cannot remove a container whose Pod is gone", "pod", uid)
			return
		}
	}
	if err := n.releasePod(uid); err != nil {
		n.cfg.Log.Error(err, "cannot clean up after a Pod that is gone", "pod", uid)
	}
}

// adoptAll remembers the runs of an earlier node, to be taken over when the
// worker runs. Of each container the last one counts.
func (w *worker) adoptAll(runs []container.Run) {
	slices.SortFunc(runs, func(a, b container.Run) int { return a.Spec().ID.Attempt - b.Spec().ID.Attempt })
	last := map[string]container.Run{}
	for _, run := range runs {
		name := run.Spec().ID.Name
		if earlier := last[name]; earlier != nil {
			earlier.Remove()
		}
		last[name] = run
	}
	for name, run := range last {
		e := w.containers[name]
		if e == nil { // the Pod has no such container: the state is damaged
			run.Kill()
			continue
		}
		spec := run.Spec()
		e.attempts = max(e.attempts, spec.ID.Attempt+1)
		e.starting = true
		w.inherited = append(w.inherited, inherited{name, run})
	}
}

// inherited is a run of an earlier node that waits to be taken over.
type inherited struct {
	name string
	run  container.Run
}

// takeOver takes over the runs of an earlier node.
func (w *worker) takeOver(ctx context.Context) {
	pod := w.current()
	sandbox, handler, err := w.furnish(ctx, pod)
	w.change(func() {
		w.sandbox, w.handler, w.prepared = sandbox, handler, err == nil
	})
	for _, i := range w.inherited {
		w.tasks.Go(func() { w.adopt(ctx, pod, i) })
	}
	w.inherited = nil
}

// adopt takes over one run: it follows it, reports its end, or makes way for it
// to be run again.
func (w *worker) adopt(ctx context.Context, pod *corev1.Pod, i inherited) {
	w.mu.Lock()
	e := w.containers[i.name]
	reported := e.view.ended != nil && sameRun(e.view.ended.ContainerID, i.run.Spec().ID)
	if reported {
		e.run, e.starting = i.run, false
	}
	w.mu.Unlock()
	if reported {
		w.poke()
		return
	}
	for try := 0; ctx.Err() == nil; try++ {
		err := w.tryAdopt(ctx, pod, e, i)
		if err == nil {
			return
		}
		w.warn("FailedAdoption", err.Error())
		pause := time.NewTimer(retryDelay(try))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

func (w *worker) tryAdopt(ctx context.Context, pod *corev1.Pod, e *entry, i inherited) error {
	spec := i.run.Spec()
	log, err := containerlog.Create(spec.Log)
	if err != nil {
		return err
	}
	f := &follower{worker: w, pod: pod, spec: containerOf(pod, i.name), entry: e, id: spec.ID, log: log, mounts: spec.Mounts, inImage: spec.Root != nil, run: i.run}
	if err := f.observe(ctx); err != nil {
		log.Close()
		return err
	}
	if again(i.run) {
		defer log.Close()
		defer f.observer.Close()
		if err := f.observer.Discard(ctx); err != nil {
			return err
		}
		if err := i.run.Remove(); err != nil {
			return err
		}
		w.change(func() {
			w.succeed(e, spec)
			e.starting = false
		})
		return nil
	}
	w.node.gpus.keep(spec.ID.Pod, spec.ID.Name, spec.Env)
	w.change(func() {
		w.succeed(e, spec)
		e.id = containerID(spec)
		if spec.Root != nil {
			e.imageID = spec.Root.ImageID
		} else if env, err := w.node.cfg.Images.Resolve(f.spec.Image, true, false); err == nil {
			e.imageID = env.ID
		}
	})
	f.begin(i.run)
	w.tasks.Go(func() { w.follow(ctx, f) })
	return nil
}

// succeed makes the view that of a container whose last run is spec's.
func (w *worker) succeed(e *entry, spec container.Spec) {
	if e.view.ended != nil {
		e.previous, e.view.ended = e.view.ended, nil
	}
	e.restarts, e.backoff = spec.Restarts, spec.Backoff
}

// again reports whether a run was interrupted and must run again.
func again(run container.Run) bool {
	select {
	case <-run.Done():
		outcome := run.Exit().Outcome
		return outcome == container.Interrupted || outcome == container.Lost
	default:
		return false
	}
}
