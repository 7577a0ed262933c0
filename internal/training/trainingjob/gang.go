// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

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
	if pod.Spec.SchedulerName == "" && g.scheduler != native {
		pod.Spec.SchedulerName = g.scheduler
	}
	switch g.scheduler {
	case native:
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(job.GetName())}
		if pod.Spec.PriorityClassName == "" { // that of all in a group must be the same
			pod.Spec.PriorityClassName = priorityClass(job)
		}
	case volcano:
		pod.Annotations = with(pod.Annotations, "scheduling.k8s.io/group-name", job.GetName())
		pod.Annotations = with(pod.Annotations, "volcano.sh/task-spec", strings.ToLower(string(r.Type)))
	default:
		pod.Labels = with(pod.Labels, "scheduling.x-k8s.io/pod-group", job.GetName())
	}
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
	group := newGroup(g.scheduler)
	group.Object["spec"] = g.groupSpec(job, pods)
	owned := metadata(job, job.GetName(), nil)
	group.SetName(owned.Name)
	group.SetNamespace(owned.Namespace)
	group.SetOwnerReferences(owned.OwnerReferences)
	group.SetAnnotations(job.GetAnnotations())
	return append([]client.Object{group}, g.Framework.Objects(job, pods)...)
}

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
		return fmt.Sprintf("schedulingPolicy.minAvailable is %d, but %s %s has only %d replicas: none of them will be scheduled", need, job.Traits().Kind, job.GetName(), have)
	}
	return ""
}

// placeable reports whether a job's Pods may be created: Volcano admits a
// group when it is its turn, and gets no Pods before.
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

// endsWithJob reports whether an object is of no use once a job has ended or is
// suspended.
func endsWithJob(obj client.Object) bool {
	_, scales := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	return scales || obj.GetObjectKind().GroupVersionKind().Kind == podGroupKind
}
