// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// volcano is the name of Volcano's scheduler. Any other name is one with the
// coscheduling plugin of scheduler-plugins.
const volcano = "volcano"

// gang is a Framework whose jobs' Pods are placed all or none, by a PodGroup of
// the job's name that a scheduler knows.
type gang struct {
	Framework
	scheduler string
}

// Connect implements Framework: a Pod says to which group it belongs.
func (g gang) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	g.Framework.Connect(job, r, pod)
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = g.scheduler
	}
	if g.scheduler == volcano {
		pod.Annotations = with(pod.Annotations, "scheduling.k8s.io/group-name", job.GetName())
		pod.Annotations = with(pod.Annotations, "volcano.sh/task-spec", strings.ToLower(string(r.Type)))
		return
	}
	pod.Labels = with(pod.Labels, "scheduling.x-k8s.io/pod-group", job.GetName())
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// Objects implements Framework: the group.
func (g gang) Objects(job v1.Job, pods map[Replica]*corev1.Pod) []client.Object {
	policy := job.Policy().SchedulingPolicy
	if policy == nil {
		policy = &v1.SchedulingPolicy{}
	}
	members := total(job)
	if policy.MinAvailable != nil {
		members = int(*policy.MinAvailable)
	}
	resources := requests(job, members)
	if policy.MinResources != nil {
		resources = corev1.ResourceList(*policy.MinResources)
	}
	spec := map[string]any{"minMember": int64(members), "minResources": plainResources(resources)}
	group := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	group.SetAPIVersion("scheduling.x-k8s.io/v1alpha1")
	if g.scheduler == volcano {
		group.SetAPIVersion("scheduling.volcano.sh/v1beta1")
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
	group.SetKind(podGroupKind)
	owned := metadata(job, job.GetName(), nil)
	group.SetName(owned.Name)
	group.SetNamespace(owned.Namespace)
	group.SetOwnerReferences(owned.OwnerReferences)
	group.SetAnnotations(job.GetAnnotations())
	return append([]client.Object{group}, g.Framework.Objects(job, pods)...)
}

const podGroupKind = "PodGroup"

// requests is what the first Pods of a job ask for, as many as are members; a
// container that only has limits asks for these.
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

// endsWithJob reports whether an object is of no use once a job has ended or is
// suspended.
func endsWithJob(obj client.Object) bool {
	_, scales := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	return scales || obj.GetObjectKind().GroupVersionKind().Kind == podGroupKind
}
