// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// collision warns of a port on which programs of another Pod listen too, where Pods share
// the network of this machine.
func (w *worker) collision(pod *corev1.Pod) {
	why := w.node.cfg.Network.Shared()
	if why == nil {
		return
	}
	for _, other := range w.node.Pods() {
		if other.UID == pod.UID || other.Status.Phase == corev1.PodSucceeded || other.Status.Phase == corev1.PodFailed {
			continue
		}
		if port := commonPort(pod, other); port != 0 {
			w.warn("Degraded", fmt.Sprintf("port %d is also used by pod %s/%s, and Pods share this machine's network: have programs listen on $POD_IP instead of all addresses, or enable Pod networks: %v", port, other.Namespace, other.Name, why))
			return
		}
	}
}

// commonPort is the first TCP port that containers of both Pods declare, or 0.
func commonPort(a, b *corev1.Pod) int32 {
	declared := map[int32]bool{}
	for _, c := range containersOf(b) {
		for _, p := range c.Ports {
			declared[p.ContainerPort] = declared[p.ContainerPort] || overTCP(p)
		}
	}
	for _, c := range containersOf(a) {
		for _, p := range c.Ports {
			if declared[p.ContainerPort] && overTCP(p) {
				return p.ContainerPort
			}
		}
	}
	return 0
}

func overTCP(p corev1.ContainerPort) bool {
	return p.Protocol == corev1.ProtocolTCP || p.Protocol == ""
}
