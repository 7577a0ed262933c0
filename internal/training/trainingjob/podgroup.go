// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// Schedulers that place groups, by the name that the operator is given. Any other
// name is that of one with the coscheduling plugin of scheduler-plugins.
const (
	native  = "kubernetes" // kube-scheduler, whatever its name, by Kubernetes' own PodGroups
	volcano = "volcano"
)

// The groups that each knows.
const (
	podGroupKind        = "PodGroup"
	nativeVersion       = "scheduling.k8s.io/v1beta1"
	volcanoVersion      = "scheduling.volcano.sh/v1beta1"
	coschedulingVersion = "scheduling.x-k8s.io/v1alpha1"
)

// newGroup is an empty group of a scheduler's kind.
func newGroup(scheduler string) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{}}
	switch scheduler {
	case native:
		group.SetAPIVersion(nativeVersion)
	case volcano:
		group.SetAPIVersion(volcanoVersion)
	default:
		group.SetAPIVersion(coschedulingVersion)
	}
	group.SetKind(podGroupKind)
	return group
}

// groupKinds is the kind of a scheduler's groups, if there is a scheduler and the
// cluster has the kind.
func groupKinds(scheduler string, mapper meta.RESTMapper) ([]schema.GroupVersionKind, error) {
	if scheduler == "" {
		return nil, nil
	}
	kind := newGroup(scheduler).GroupVersionKind()
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return []schema.GroupVersionKind{kind}, err
}

// groupSpec returns the spec of a job's group.
func (g gang) groupSpec(job v1.Job, pods map[Replica]*corev1.Pod) map[string]any {
	policy := job.Policy().SchedulingPolicy
	if policy == nil {
		policy = &v1.SchedulingPolicy{}
	}
	members := minMember(job)
	if g.scheduler == native {
		return nativeSpec(job, members, pods)
	}
	resources := requests(job, members)
	if policy.MinResources != nil {
		resources = corev1.ResourceList(*policy.MinResources)
	}
	spec := map[string]any{"minMember": int64(members), "minResources": plainResources(resources)}
	if g.scheduler == volcano {
		spec["queue"] = "default"
		if policy.Queue != "" {
			spec["queue"] = policy.Queue
		}
		if policy.PriorityClass != "" {
			spec["priorityClassName"] = policy.PriorityClass
		}
	} else if policy.ScheduleTimeoutSeconds != nil {
		spec["scheduleTimeoutSeconds"] = int64(*policy.ScheduleTimeoutSeconds)
	}
	return spec
}

// nativeSpec is that of Kubernetes' own group. Its scheduler forgets Pods that
// have succeeded, and those that came before jobs were gangs name no group, so
// that fewer are needed beside the replacement of another.
func nativeSpec(job v1.Job, members int, pods map[Replica]*corev1.Pod) map[string]any {
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Spec.SchedulingGroup == nil {
			members--
		}
	}
	spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(max(1, members))}}}
	if class := priorityClass(job); class != "" {
		spec["priorityClassName"] = class
	}
	return spec
}

// priorityClass is that of a group: its policy's, or that of the first replicas.
func priorityClass(job v1.Job) string {
	if policy := job.Policy().SchedulingPolicy; policy != nil && policy.PriorityClass != "" {
		return policy.PriorityClass
	}
	for _, t := range job.Traits().Types {
		if spec := job.Replicas()[t]; spec != nil && spec.Template.Spec.PriorityClassName != "" {
			return spec.Template.Spec.PriorityClassName
		}
	}
	return ""
}

// requests returns the requests of the first Pods of a job, as many as are
// members; a container with only limits requests these.
func requests(job v1.Job, members int) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, t := range job.Traits().Types {
		spec := job.Replicas()[t]
		if spec == nil {
			continue
		}
		count := min(int(*spec.Replicas), members)
		members -= count
		for _, c := range spec.Template.Spec.Containers {
			asked := c.Resources.Requests
			if len(asked) == 0 {
				asked = c.Resources.Limits
			}
			for name, amount := range asked {
				have := sum[name]
				for range count {
					have.Add(amount)
				}
				sum[name] = have
			}
		}
	}
	return sum
}

func plainResources(resources corev1.ResourceList) map[string]any {
	out := map[string]any{}
	for name, amount := range resources {
		out[string(name)] = amount.String()
	}
	return out
}
