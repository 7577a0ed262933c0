// SPDX-License-Identifier: Apache-2.0

// Package checkpoint gives training jobs a directory that outlives their Pods: a
// claim that the job owns, and a volume in each Pod.
package checkpoint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// ClaimName is the name of a job's claim.
func ClaimName(job string) string { return job + "-checkpoint" }

// Claim is the claim of a job, whose checkpoint has its defaults, without metadata
// but for its name.
func Claim(job string, c *v1.Checkpoint) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: ClaimName(job)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      c.AccessModes,
			StorageClassName: c.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *c.Storage}},
		},
	}
}

// Mount gives a job's Pod the directory: each container finds it at the path, and
// the path in a variable, unless the user has set that. Init containers find it too,
// since one of them may fetch what training begins with.
func Mount(job string, c *v1.Checkpoint, pod *corev1.PodSpec) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: v1.CheckpointVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: ClaimName(job)},
	}})
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			in := &containers[i]
			in.VolumeMounts = append(in.VolumeMounts, corev1.VolumeMount{Name: v1.CheckpointVolume, MountPath: c.Path})
			if !slices.ContainsFunc(in.Env, func(e corev1.EnvVar) bool { return e.Name == v1.EnvCheckpoint }) {
				in.Env = append(in.Env, corev1.EnvVar{Name: v1.EnvCheckpoint, Value: c.Path})
			}
		}
	}
}
