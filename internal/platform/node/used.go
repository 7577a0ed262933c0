// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/podusage"
)

// used is the usage of a container's ended runs.
type used struct {
	ended bool
	cpu   time.Duration // together
	peak  int64         // of the run that used most; 0 if nobody knows
}

// add adds a run.
func (u *used) add(exit container.Exit) {
	u.ended = true
	u.cpu += exit.CPU
	u.peak = max(u.peak, exit.PeakMemory)
}

// usedBy sums up a Pod: init containers run one after another, the others
// together. It is "" while none has ended.
func usedBy(pod *corev1.Pod, of func(name string) used) string {
	var all, alone used
	for _, c := range containersOf(pod) {
		u := of(c.Name)
		all.ended = all.ended || u.ended
		all.cpu += u.cpu
		if isInit(pod, c) && !isSidecar(c) {
			alone.peak = max(alone.peak, u.peak)
		} else {
			all.peak += u.peak
		}
	}
	if !all.ended {
		return ""
	}
	return podusage.Of(all.cpu, max(all.peak, alone.peak)).String()
}

// annotate records the Pod's usage in a copy of it before it is written.
func (w *worker) annotate(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := usedBy(pod, func(name string) used {
		if e := w.containers[name]; e != nil {
			return e.used
		}
		return used{}
	})
	if text == "" {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[podusage.Annotation] = text
}
