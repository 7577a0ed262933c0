// SPDX-License-Identifier: Apache-2.0

package deadnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/reconciling"
)

// Decide returns the Pods of a node that are lost, and when to look again, 0 for
// when the node changes. A node that no longer exists is nil.
//
// A Pod is lost when it is being deleted and its node cannot say that it ended:
// the node is declared out of service, or is silent or deleted and the Pod's time
// to end has been over for the patience. A node that says itself that it is not
// ready is not silent: programs may run there.
func Decide(node *corev1.Node, pods []corev1.Pod, now time.Time, patience time.Duration) (lost []*corev1.Pod, after time.Duration) {
	if outOfService(node) {
		patience = 0
	} else if !silent(node) {
		return nil, 0
	}
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp == nil && ended(p) {
			continue // it can be deleted without its node
		}
		left := patience // a Pod that is not being deleted may be, at any time
		if p.DeletionTimestamp != nil {
			if !outOfService(node) {
				left += p.DeletionTimestamp.Sub(now)
			}
			if left <= 0 {
				lost = append(lost, p)
				continue
			}
		}
		after = reconciling.Soonest(after, max(left, time.Second))
	}
	return lost, after
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// silent reports whether a node does not answer, or is no more.
func silent(node *corev1.Node) bool { return node == nil || ready(node) == corev1.ConditionUnknown }

// outOfService reports whether an administrator says that a node has been shut
// down, and it does not say otherwise.
func outOfService(node *corev1.Node) bool {
	if node == nil || ready(node) == corev1.ConditionTrue {
		return false
	}
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}

func ready(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return "" // it has not said anything yet
}
