// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types below mirror a runtime, from its spec down to containers, with the
// fields that may be patched.

// TrainingRuntimeSpecPatch patches a runtime.
type TrainingRuntimeSpecPatch struct {
	// The JobSet.
	Template *JobSetTemplatePatch `json:"template,omitempty"`
}

// JobSetTemplatePatch patches the JobSet.
type JobSetTemplatePatch struct {
	// Labels and annotations only.
	Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`

	// The replicated jobs.
	Spec *JobSetSpecPatch `json:"spec,omitempty"`
}

// JobSetSpecPatch patches replicated jobs.
type JobSetSpecPatch struct {
	// Each by name.
	ReplicatedJobs []ReplicatedJobPatch `json:"replicatedJobs,omitempty"`
}

// ReplicatedJobPatch patches one replicated job.
type ReplicatedJobPatch struct {
	// Its name, which the runtime must have.
	Name string `json:"name,omitempty"`

	// Its Jobs.
	Template *JobTemplatePatch `json:"template,omitempty"`
}

// JobTemplatePatch patches Jobs.
type JobTemplatePatch struct {
	// Labels and annotations only.
	Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`

	// The Jobs' Pods.
	Spec *JobSpecPatch `json:"spec,omitempty"`
}

// JobSpecPatch patches the spec of Jobs.
type JobSpecPatch struct {
	// The Pods.
	Template *PodTemplatePatch `json:"template,omitempty"`
}

// PodTemplatePatch patches Pods.
type PodTemplatePatch struct {
	// Labels and annotations only.
	Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`

	// The spec of Pods.
	Spec *PodSpecPatch `json:"spec,omitempty"`
}

// PodSpecPatch has the fields of Pods that may be patched; each means what it
// means in a Pod.
type PodSpecPatch struct {
	ServiceAccountName            *string                       `json:"serviceAccountName,omitempty"`
	Volumes                       []corev1.Volume               `json:"volumes,omitempty"`
	InitContainers                []ContainerPatch              `json:"initContainers,omitempty"`
	Containers                    []ContainerPatch              `json:"containers,omitempty"`
	ImagePullSecrets              []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	SecurityContext               *corev1.PodSecurityContext    `json:"securityContext,omitempty"`
	NodeSelector                  map[string]string             `json:"nodeSelector,omitempty"`
	Affinity                      *corev1.Affinity              `json:"affinity,omitempty"`
	Tolerations                   []corev1.Toleration           `json:"tolerations,omitempty"`
	SchedulingGates               []corev1.PodSchedulingGate    `json:"schedulingGates,omitempty"`
	TerminationGracePeriodSeconds *int64                        `json:"terminationGracePeriodSeconds,omitempty"`
}

// ContainerPatch patches a container.
type ContainerPatch struct {
	// Its name, which the runtime must have.
	Name string `json:"name,omitempty"`

	// Variables, overriding those of the runtime. Not for the containers node,
	// dataset-initializer and model-initializer, whose variables are set in the
	// TrainJob.
	Env []corev1.EnvVar `json:"env,omitempty"`

	VolumeMounts    []corev1.VolumeMount    `json:"volumeMounts,omitempty"`
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}
