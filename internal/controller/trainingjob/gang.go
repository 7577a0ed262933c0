// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	byPolicy  bool // only those that have a scheduling policy
}

// includes reports whether a job is one.
func (g gang) includes(job v1.Job) bool { return !g.byPolicy || job.Policy().SchedulingPolicy != nil }

// Connect implements Framework: a Pod says to which group it belongs.
func (g gang) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	g.Framework.Connect(job, r, pod)
	if !g.includes(job) {
		return
	}
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
	if !g.includes(job) {
		return g.Framework.Objects(job, pods)
	}
	policy := job.Policy().SchedulingPolicy
	if policy == nil {
		policy = &v1.SchedulingPolicy{}
	}
	members := minMember(job)
	resources := requests(job, members)
	if policy.MinResources != nil {
		resources = corev1.ResourceList(*policy.MinResources)
	}
	spec := map[string]any{"minMember": int64(members), "minResources": plainResources(resources)}
	group := newGroup(g.scheduler)
	group.Object["spec"] = spec
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
	owned := metadata(job, job.GetName(), nil)
	group.SetName(owned.Name)
	group.SetNamespace(owned.Namespace)
	group.SetOwnerReferences(owned.OwnerReferences)
	group.SetAnnotations(job.GetAnnotations())
	return append([]client.Object{group}, g.Framework.Objects(job, pods)...)
}

const (
	podGroupKind        = "PodGroup"
	volcanoVersion      = "scheduling.volcano.sh/v1beta1"
	coschedulingVersion = "scheduling.x-k8s.io/v1alpha1"
)

// minMember is how many of a job's Pods are placed at once.
func minMember(job v1.Job) int {
	if policy := job.Policy().SchedulingPolicy; policy != nil && policy.MinAvailable != nil {
		return int(*policy.MinAvailable)
	}
	if j := v2beta1(job); j != nil && j.Spec.LauncherCreationPolicy == v1.LauncherWaitForWorkersReady {
		return total(job) - 1 // the launcher comes when the others run
	}
	return total(job)
}

// impossible says why a job can never be placed, "" if nothing speaks against it.
func (g gang) impossible(job v1.Job) string {
	if have, need := total(job), minMember(job); g.includes(job) && need > have {
		return fmt.Sprintf("schedulingPolicy.minAvailable is %d, but %s %s has only %d replicas: none of them will be placed", need, job.Traits().Kind, job.GetName(), have)
	}
	return ""
}

// newGroup is an empty group of a scheduler's kind.
func newGroup(scheduler string) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{}}
	group.SetAPIVersion(coschedulingVersion)
	if scheduler == volcano {
		group.SetAPIVersion(volcanoVersion)
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

// placeable reports whether a job's Pods may be created: Volcano says when a
// group has come to its turn, and is not given Pods before.
func (r *reconciler) placeable(ctx context.Context, job v1.Job) (bool, error) {
	g, ok := r.framework.(gang)
	if !ok || g.scheduler != volcano || !g.includes(job) {
		return true, nil
	}
	group := newGroup(g.scheduler)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(job), group); err != nil {
		return false, fmt.Errorf("cannot read PodGroup %s/%s: %w", job.GetNamespace(), job.GetName(), err)
	}
	phase, _, _ := unstructured.NestedString(group.Object, "status", "phase")
	return phase != "" && phase != "Pending", nil
}

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
