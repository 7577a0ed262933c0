// SPDX-License-Identifier: Apache-2.0

// Package gang is a kube-scheduler plugin that schedules the Pods of a PodGroup
// all or nothing. It supports the PodGroups of scheduler-plugins' coscheduling and
// of Volcano, so that the local cluster's scheduler honors what is written for
// these. The scheduler places Kubernetes' own PodGroups itself; here they only
// have their place in the queue.
//
//	Pods of a group ──gate─▶ all there? ──room─▶ can they fit? ──permit─▶ together
//
// A group is a gang until its first Pod is bound. Until then no Pod passes the
// gate before minMember of them exist, none is tried while the nodes have no room
// for that many, and one that found a node activates the others and waits for
// them. When one of them finds none, the waiting ones release their places at
// once, so that two groups never hold what the other needs, and no other is tried
// before it has found one. A bound Pod means that the whole group was placed;
// later Pods, such as the replacement of a failed one, are scheduled alone.
//
// Groups are queued by priority and then by age, their Pods next to each other.
// Only the phase of the group is stored, for information.
package gang
