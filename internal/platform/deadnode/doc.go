// SPDX-License-Identifier: Apache-2.0

// Package deadnode lets go of Pods whose node is dead.
//
//	node silent ─▶ unreachable ─tolerations over─▶ its Pods are deleted   Kubernetes
//	nobody there to end them   ─▶ Terminating, forever
//	long enough                ─▶ deleted for good                        here
//
// Kubernetes keeps such a Pod until its kubelet says that it has ended. One on a
// machine that is gone keeps the name that its replacement needs, and a Job whose
// Pod it was never ends. [Decide] is a pure function that says of which Pods no
// word will come; they are deleted without one, and what owns them goes on
// elsewhere. How long a Pod is waited for is the user's: tolerationSeconds of its
// tolerations for node.kubernetes.io/unreachable, 300 unless it says otherwise.
//
// Only Pods that belong to objects of the domains are touched.
package deadnode
