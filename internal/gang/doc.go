// SPDX-License-Identifier: Apache-2.0

// Package gang is a plugin of kube-scheduler that places the Pods of a PodGroup
// all or none. It knows the PodGroups of scheduler-plugins' coscheduling and of
// Volcano, so that what is written for these schedulers is honoured by the one
// of the local cluster. Those of Kubernetes' own the scheduler places itself; here
// they only have their place in the queue.
//
//	Pods of a group ──gate─▶ all there? ──room─▶ can they fit? ──permit─▶ together
//
// A group is a gang until its first Pod is bound. Until then no Pod leaves the
// gate before as many as minMember are there, none is tried while the nodes have
// not room for that many, and one that found a node calls the others and waits
// for them. When one of them finds none, those that wait let go at once, so that
// two groups never hold what the other needs, and no other is tried before it
// has found one. As soon as a Pod of the group is bound, the group was placed
// whole; what comes later, such as the replacement of a Pod that failed, comes
// alone.
//
// Groups stand in the queue by priority and then by age, their Pods next to
// each other. Nothing is stored but the phase of the group, which only tells.
package gang
