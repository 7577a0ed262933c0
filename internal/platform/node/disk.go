// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// watchDisk measures the disk and what Pods hold on it, cleans up old logs, and
// refreshes the Node's status once in five minutes or when something changed.
func (n *Node) watchDisk(ctx context.Context) {
	tick := time.NewTicker(n.cfg.DiskCheck)
	defer tick.Stop()
	n.cleanLogs()
	pressure, reported := "", clock()
	cleaned := clock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, w := range n.allWorkers() {
			w.checkDisk()
		}
		now := n.diskPressure()
		if now == pressure && clock().Sub(reported) < 5*time.Minute {
			continue
		}
		if clock().Sub(cleaned) > time.Minute {
			n.cleanLogs()
			cleaned = clock()
		}
		err := n.updateStatus(ctx, true, now)
		if err == nil && (now == "") != (pressure == "") {
			err = n.taint(ctx, now != "")
		}
		if err != nil {
			n.cfg.Log.Error(err, "cannot refresh the node's status; retrying")
			continue
		}
		pressure, reported = now, clock()
	}
}

// diskPressure says why the disk is short; "" when it is not.
func (n *Node) diskPressure() string {
	size, free := diskSpace(n.cfg.Dir)
	need := min(int64(float64(size)*n.cfg.DiskFree), 1<<30)
	if size == 0 || free >= need {
		return ""
	}
	return fmt.Sprintf("the disk of %s has %s left, but at least %s must stay free; remove files, for example old logs in %s",
		n.cfg.Dir, bytesText(free), bytesText(need), n.cfg.LogDir)
}

// measureShare bounds the time that measuring a Pod's disk takes: one part in so
// many.
const measureShare = 20

// checkDisk evicts a Pod that holds more on the disk than it may, as kubelet does.
func (w *worker) checkDisk() {
	pod := w.current()
	limited := limitOf(pod)
	hasDirs := false
	for i := range pod.Spec.Volumes {
		if d := pod.Spec.Volumes[i].EmptyDir; d != nil {
			hasDirs = hasDirs || d.SizeLimit != nil
		}
	}
	begun := clock()
	if limited == 0 && !hasDirs || begun.Before(w.measureAt) {
		return
	}
	var sum int64
	dirs := w.node.volumes.EmptyDirs(pod)
	w.measureAt = clock().Add(measureShare * clock().Sub(begun))
	for _, d := range dirs {
		sum += d.Used
		if d.Limit > 0 && d.Used > d.Limit {
			w.evict(fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", d.Name, bytesText(d.Limit)))
			return
		}
	}
	if limited > 0 && sum > limited {
		w.evict(fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", bytesText(limited)))
	}
}

// evict ends a Pod as Failed.
func (w *worker) evict(message string) {
	w.change(func() {
		if w.failure == nil {
			w.failure = &failure{reason: "Evicted", message: message, disruption: true}
		}
	})
	w.warn("Evicted", message)
}

// limitOf is the sum of the containers' limits on the disk; 0 when one has none.
func limitOf(pod *corev1.Pod) int64 {
	var sum int64
	for i := range pod.Spec.Containers {
		l, ok := pod.Spec.Containers[i].Resources.Limits[corev1.ResourceEphemeralStorage]
		if !ok {
			return 0
		}
		sum += l.Value()
	}
	return sum
}

func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
