// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/jobset/v1alpha2"
)

// newJob is a Job of a replicated job, from 0, of the set's present attempt.
func newJob(set *v1alpha2.JobSet, r *v1alpha2.ReplicatedJob, index int) *batchv1.Job {
	template := r.Template.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            v1alpha2.JobName(set.Name, r.Name, index),
			Namespace:       set.Namespace,
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*owner(set)},
		},
		Spec: template.Spec,
	}
	marks := marksOf(set, r, index)
	for _, o := range []*metav1.ObjectMeta{&job.ObjectMeta, &job.Spec.Template.ObjectMeta} {
		o.Labels, o.Annotations = merged(o.Labels, marks), merged(o.Annotations, marks)
	}
	pod := &job.Spec.Template.Spec
	if ptr.Deref(set.Spec.Network.EnableDNSHostnames, false) {
		pod.Subdomain = set.Subdomain()
	}
	for _, policy := range set.Spec.VolumeClaimPolicies {
		for _, claim := range policy.Templates {
			if r.Mounts(claim.Name) {
				pod.Volumes = append(pod.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v1alpha2.ClaimName(set.Name, claim.Name)},
				}})
			}
		}
	}
	job.Spec.Suspend = ptr.To(set.Spec.IsSuspended())
	return job
}

// marksOf returns the labels, and annotations, that identify a Job and its Pods.
func marksOf(set *v1alpha2.JobSet, r *v1alpha2.ReplicatedJob, index int) map[string]string {
	global, total, group, groupTotal := index, 0, index, 0
	before := true
	for i := range set.Spec.ReplicatedJobs {
		other := &set.Spec.ReplicatedJobs[i]
		before = before && other.Name != r.Name
		total += other.Count()
		if before {
			global += other.Count()
		}
		if other.GroupName == r.GroupName {
			groupTotal += other.Count()
			if before {
				group += other.Count()
			}
		}
	}
	sum := sha1.Sum([]byte(set.Namespace + "/" + v1alpha2.JobName(set.Name, r.Name, index)))
	marks := map[string]string{
		v1alpha2.LabelJobSetName:            set.Name,
		v1alpha2.LabelJobSetUID:             string(set.UID),
		v1alpha2.LabelReplicatedJobName:     r.Name,
		v1alpha2.LabelReplicatedJobReplicas: strconv.Itoa(r.Count()),
		v1alpha2.LabelGlobalReplicas:        strconv.Itoa(total),
		v1alpha2.LabelJobIndex:              strconv.Itoa(index),
		v1alpha2.LabelJobGlobalIndex:        strconv.Itoa(global),
		v1alpha2.LabelJobKey:                hex.EncodeToString(sum[:]),
		v1alpha2.LabelRestartAttempt:        strconv.Itoa(int(set.Status.Restarts)),
		v1alpha2.LabelGroupName:             r.GroupName,
		v1alpha2.LabelGroupReplicas:         strconv.Itoa(groupTotal),
		v1alpha2.LabelJobGroupIndex:         strconv.Itoa(group),
	}
	if c := set.Spec.Coordinator; c != nil {
		marks[v1alpha2.LabelCoordinator] = v1alpha2.HostName(set.Name, c.ReplicatedJob, c.JobIndex, c.PodIndex, set.Subdomain())
	}
	return marks
}

// resumed returns a suspended Job for resuming, with what may have changed in
// its template.
func resumed(job *batchv1.Job, r *v1alpha2.ReplicatedJob) *batchv1.Job {
	out, template := job.DeepCopy(), r.Template.Spec.Template.DeepCopy()
	pod := &out.Spec.Template
	pod.Labels, pod.Annotations = merged(pod.Labels, template.Labels), merged(pod.Annotations, template.Annotations)
	pod.Spec.NodeSelector = merged(pod.Spec.NodeSelector, template.Spec.NodeSelector)
	pod.Spec.Tolerations = united(pod.Spec.Tolerations, template.Spec.Tolerations)
	pod.Spec.SchedulingGates = united(pod.Spec.SchedulingGates, template.Spec.SchedulingGates)
	if template.Spec.Affinity != nil {
		pod.Spec.Affinity = template.Spec.Affinity
	}
	out.Spec.Suspend = ptr.To(false)
	return out
}

// merged is base with what over says, nil when there is nothing.
func merged(base, over map[string]string) map[string]string {
	if len(base)+len(over) == 0 {
		return nil
	}
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// united returns a list plus the elements of another that it lacks.
func united[T any](list, more []T) []T {
	for _, item := range more {
		if !slices.ContainsFunc(list, func(have T) bool { return equality.Semantic.DeepEqual(have, item) }) {
			list = append(list, item)
		}
	}
	return list
}

func owner(set *v1alpha2.JobSet) *metav1.OwnerReference {
	return metav1.NewControllerRef(set, v1alpha2.GroupVersion.WithKind(v1alpha2.JobSetKind))
}

// newService returns the headless Service that gives the set's Pods their
// names.
func newService(set *v1alpha2.JobSet) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Subdomain(), Namespace: set.Namespace, OwnerReferences: []metav1.OwnerReference{*owner(set)},
			Labels: map[string]string{v1alpha2.LabelJobSetName: set.Name}, // the cache holds Services by this label
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 map[string]string{v1alpha2.LabelJobSetName: set.Name},
			PublishNotReadyAddresses: ptr.Deref(set.Spec.Network.PublishNotReadyAddresses, true),
		},
	}
}

// newClaims are the set's claims.
func newClaims(set *v1alpha2.JobSet) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, policy := range set.Spec.VolumeClaimPolicies {
		for _, template := range policy.Templates {
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{
					Name: v1alpha2.ClaimName(set.Name, template.Name), Namespace: set.Namespace,
					Labels:      merged(template.Labels, map[string]string{v1alpha2.LabelJobSetName: set.Name}),
					Annotations: template.Annotations,
				},
				Spec: template.Spec,
			}
			if ptr.Deref(policy.RetentionPolicy.WhenDeleted, v1alpha2.RetentionPolicyDelete) == v1alpha2.RetentionPolicyDelete {
				claim.OwnerReferences = []metav1.OwnerReference{*owner(set)}
			}
			claims = append(claims, claim)
		}
	}
	return claims
}
