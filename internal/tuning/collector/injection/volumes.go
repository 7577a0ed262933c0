// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/dbmanager"
)

// tokenSeconds is how long a token is good; kubelet renews it at four fifths.
const tokenSeconds = 3600

// token is a volume with a token of the Pod's service account that is good for
// the DBManager alone.
func token() corev1.Volume {
	return corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: dbmanager.Audience, ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: tokenFile,
		}}},
	}}}
}

// add adds a volume unless one of its name is there.
func add(volumes *[]corev1.Volume, v corev1.Volume) {
	if !slices.ContainsFunc(*volumes, func(have corev1.Volume) bool { return have.Name == v.Name }) {
		*volumes = append(*volumes, v)
	}
}

// directory is that of the files which hold metrics, "" where none do.
func directory(spec *collector.Spec) string {
	switch spec.Kind {
	case collector.File:
		return path.Dir(path.Clean(spec.Path))
	case collector.Events:
		return path.Clean(spec.Path)
	}
	return ""
}

// share returns the mount by which the collector finds a directory of the
// primary container: that of the volume on which it lies, else of one that both
// get.
func share(pod *corev1.Pod, container *corev1.Container, dir string) corev1.VolumeMount {
	var on *corev1.VolumeMount
	for i := range container.VolumeMounts {
		m := &container.VolumeMounts[i]
		at := path.Clean(m.MountPath)
		if (at == dir || strings.HasPrefix(dir, strings.TrimSuffix(at, "/")+"/")) && (on == nil || len(at) > len(path.Clean(on.MountPath))) {
			on = m
		}
	}
	if on == nil {
		add(&pod.Spec.Volumes, corev1.Volume{Name: v1beta1.MetricsVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: v1beta1.MetricsVolume, MountPath: dir})
		on = &container.VolumeMounts[len(container.VolumeMounts)-1]
	}
	mount := on.DeepCopy()
	mount.ReadOnly, mount.MountPropagation = true, nil
	return *mount
}

// restricted is what the Pod security standard "restricted" wants. The user is
// the Pod's or the image's, which is not root.
func restricted(pod *corev1.Pod) *corev1.SecurityContext {
	const nobody = 65532
	s := &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		RunAsNonRoot:             ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if p := pod.Spec.SecurityContext; p != nil && p.RunAsUser != nil && *p.RunAsUser == 0 {
		s.RunAsUser = ptr.To[int64](nobody)
	}
	return s
}
