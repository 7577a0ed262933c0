// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/container"
)

// targetOf is the container whose processes an ephemeral container is to see, "" for none.
func targetOf(pod *corev1.Pod, c *corev1.Container) string {
	i := slices.IndexFunc(pod.Spec.EphemeralContainers, func(e corev1.EphemeralContainer) bool { return e.Name == c.Name })
	if i < 0 {
		return ""
	}
	return pod.Spec.EphemeralContainers[i].TargetContainerName
}

// among is the run whose processes a container in an image shares, nil for none.
func (w *worker) among(pod *corev1.Pod, c *corev1.Container) (*container.ID, error) {
	target := targetOf(pod, c)
	if target == "" {
		return nil, nil
	}
	w.mu.Lock()
	var run container.Run
	if e := w.containers[target]; e != nil && !e.running.IsZero() {
		run = e.run
	}
	w.mu.Unlock()
	if run == nil {
		return nil, fmt.Errorf("unable to find target container %q: it does not run", target)
	}
	spec := run.Spec()
	if spec.Root == nil {
		return nil, fmt.Errorf("unable to find target container %q among containers in images: it is a process of this machine, whose processes `ps` shows there", target)
	}
	return &spec.ID, nil
}
