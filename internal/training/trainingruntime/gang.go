// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// Labels and annotations that assign Pods to a group.
const (
	coschedulingLabel = "scheduling.x-k8s.io/pod-group"
	volcanoAnnotation = "scheduling.k8s.io/group-name"
	volcanoQueue      = "scheduling.volcano.sh/queue-name"
)

// gang makes a scheduler place all concurrent Pods at once. Pods that must end
// before the others start, such as initializers, are not part of the group;
// Pods that start only when others run, such as a launcher, join when these are
// placed.
func (l *layout) gang(policy *v1alpha1.PodGroupPolicy) {
	if policy == nil || policy.Coscheduling == nil && policy.Volcano == nil {
		return
	}
	members, requests := l.total()
	group := &unstructured.Unstructured{Object: map[string]any{}}
	group.SetName(l.job.Name)
	group.SetNamespace(l.job.Namespace)
	group.SetOwnerReferences(l.meta("").OwnerReferences)
	group.SetKind("PodGroup")
	spec := map[string]any{"minMember": int64(members)}
	if len(requests) > 0 {
		resources := map[string]any{}
		for name, q := range requests {
			resources[string(name)] = q.String()
		}
		spec["minResources"] = resources
	}
	if c := policy.Coscheduling; c != nil {
		group.SetAPIVersion("scheduling.x-k8s.io/v1alpha1")
		spec["scheduleTimeoutSeconds"] = int64(ptr.Deref(c.ScheduleTimeoutSeconds, 60))
	} else {
		group.SetAPIVersion("scheduling.volcano.sh/v1beta1")
		if queue := l.notes[volcanoQueue]; queue != "" {
			spec["queue"] = queue
		}
		if t := policy.Volcano.NetworkTopology; t != nil {
			topology := map[string]any{}
			if t.Mode != "" {
				topology["mode"] = t.Mode
			}
			if t.HighestTierAllowed != nil {
				topology["highestTierAllowed"] = int64(*t.HighestTierAllowed)
			}
			spec["networkTopology"] = topology
		}
	}
	group.Object["spec"] = spec
	for i := range l.set.ReplicatedJobs {
		if l.endsBefore(i) {
			continue
		}
		pod := &l.set.ReplicatedJobs[i].Template.Spec.Template
		if policy.Coscheduling != nil {
			pod.Labels = with(pod.Labels, coschedulingLabel, l.job.Name)
		} else {
			pod.Annotations = with(pod.Annotations, volcanoAnnotation, l.job.Name)
		}
	}
	l.out.PodGroup = group
}

// endsBefore reports whether a replicated job must be complete before another
// begins.
func (l *layout) endsBefore(i int) bool {
	name := l.set.ReplicatedJobs[i].Name
	return slices.ContainsFunc(l.set.ReplicatedJobs, func(r v1alpha2.ReplicatedJob) bool {
		return slices.Contains(r.DependsOn, v1alpha2.DependsOn{Name: name, Status: v1alpha2.DependencyComplete})
	})
}

// comesLater reports whether a replicated job begins only when others run.
func (l *layout) comesLater(i int) bool {
	if p := l.set.StartupPolicy; p != nil && p.StartupPolicyOrder == v1alpha2.InOrder && i > 0 {
		return true
	}
	return slices.ContainsFunc(l.set.ReplicatedJobs[i].DependsOn, func(d v1alpha2.DependsOn) bool { return d.Status == v1alpha2.DependencyReady })
}

// total returns how many Pods start together, and their requests.
func (l *layout) total() (members int, requests corev1.ResourceList) {
	requests = corev1.ResourceList{}
	for i := range l.set.ReplicatedJobs {
		r := &l.set.ReplicatedJobs[i]
		if l.endsBefore(i) || l.comesLater(i) {
			continue
		}
		n := r.Count() * pods(r)
		members += n
		for _, c := range r.Template.Spec.Template.Spec.Containers {
			for name, each := range c.Resources.Requests {
				sum := requests[name]
				for range n {
					sum.Add(each)
				}
				requests[name] = sum
			}
		}
	}
	return members, requests
}
