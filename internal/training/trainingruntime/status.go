// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// Where a training finds what it needs to report its progress.
const (
	statusVolume    = "kubeflow-trainer-token"
	statusDirectory = "/var/run/secrets/kubeflow/trainer"
	authorityKey    = "ca.crt"
	tokenFile       = "token"
	tokenSeconds    = 3600
)

// AddStatus gives the nodes of a job the server for progress reports,
// https://host:port, with PEM encoded CA certificates: through variables, and a
// volume with the CA and a token.
func (o *Objects) AddStatus(job *v1alpha1.TrainJob, server string, authorities []byte) {
	l := &layout{job: job, set: o.JobSet.Spec}
	trainer := l.ancestor(v1alpha1.AncestorTrainer)
	if trainer == nil {
		return
	}
	o.Authorities = &corev1.ConfigMap{ObjectMeta: l.meta(job.Name + "-tls-config"), Data: map[string]string{authorityKey: string(authorities)}}
	tellsStatus(trainer, job, server, o.Authorities.Name)
}

func tellsStatus(r *v1alpha2.ReplicatedJob, job *v1alpha1.TrainJob, server, authorities string) {
	pod := &r.Template.Spec.Template.Spec
	for i := range pod.Containers {
		c := &pod.Containers[i]
		setEnv(&c.Env,
			corev1.EnvVar{Name: v1alpha1.EnvStatusURL, Value: server + v1alpha1.StatusPath(job.Namespace, job.Name)},
			corev1.EnvVar{Name: v1alpha1.EnvStatusCertificate, Value: statusDirectory + "/" + authorityKey},
			corev1.EnvVar{Name: v1alpha1.EnvStatusToken, Value: statusDirectory + "/" + tokenFile})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: statusVolume, MountPath: statusDirectory, ReadOnly: true})
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: statusVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: v1alpha1.StatusAudience(job.Namespace, job.Name), ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: tokenFile,
			}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: authorities},
				Items:                []corev1.KeyToPath{{Key: authorityKey, Path: authorityKey}},
			}},
		},
	}}})
}
