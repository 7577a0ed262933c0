// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/training/sshkey"
)

// The variables by which OpenMPI finds its nodes; jobs may not set them.
const (
	mpiHostFile  = "OMPI_MCA_orte_default_hostfile"
	mpiAgentArgs = "OMPI_MCA_plm_rsh_args"
	mpiKeepNames = "OMPI_MCA_orte_keep_fqdn_hostnames"
	mpiSlots     = "OMPI_MCA_orte_set_default_slots"
)

// Names of what MPI needs.
const (
	hostFileDirectory = "/etc/mpi"
	hostFileName      = "hostfile"
	hostFileVolume    = "mpi-hostfile"
	sshVolume         = "mpi-ssh-auth"
)

// mpi gives the launcher a host file and all nodes a pair of keys for ssh.
func (l *layout) mpi() error {
	p := l.policy.MPI
	if *p.MPIImplementation != v1alpha1.OpenMPI {
		return fmt.Errorf("mpiImplementation %q is not supported: it must be %s", *p.MPIImplementation, v1alpha1.OpenMPI)
	}
	slots := int(*p.NumProcPerNode)
	if t := l.job.Spec.Trainer; t != nil && t.NumProcPerNode != nil {
		slots = int(*t.NumProcPerNode)
	} else if gpus := accelerators(l.perNode()); slots == 1 && gpus > 1 {
		slots = gpus
	}
	l.out.SSHKeys = l.job.Name + "-mpi-ssh-auth"
	var hosts strings.Builder
	for i := range l.set.ReplicatedJobs {
		r := &l.set.ReplicatedJobs[i]
		if r.Name != v1alpha1.Node && r.Name != v1alpha1.Launcher {
			continue
		}
		if r.Name == v1alpha1.Node || l.launcherIsNode() {
			for _, host := range l.hosts(r) {
				fmt.Fprintf(&hosts, "%s slots=%d\n", host, slots)
			}
		}
		pod := &r.Template.Spec.Template.Spec
		setVolume(pod, keysVolume(l.out.SSHKeys))
		launcher := r.Name == v1alpha1.Launcher
		if launcher {
			setVolume(pod, hostsVolume(l.hostFile()))
		}
		for k := range pod.Containers {
			c := &pod.Containers[k]
			if c.Name != v1alpha1.Node {
				continue
			}
			setMount(c, corev1.VolumeMount{Name: sshVolume, MountPath: *p.SSHAuthMountPath})
			if launcher {
				setMount(c, corev1.VolumeMount{Name: hostFileVolume, MountPath: hostFileDirectory})
				setEnv(&c.Env,
					corev1.EnvVar{Name: mpiHostFile, Value: hostFileDirectory + "/" + hostFileName},
					corev1.EnvVar{Name: mpiKeepNames, Value: "true"},
					corev1.EnvVar{Name: mpiSlots, Value: strconv.Itoa(slots)},
					corev1.EnvVar{Name: mpiAgentArgs, Value: "-o ConnectionAttempts=10"},
				)
			}
		}
	}
	l.out.HostFile = &corev1.ConfigMap{ObjectMeta: l.meta(l.hostFile()), Data: map[string]string{hostFileName: hosts.String()}}
	return nil
}

// hostFile is the name of the ConfigMap with the host file.
func (l *layout) hostFile() string { return l.job.Name + "-mpi-hostfile" }

// keysVolume has a pair of keys as ssh wants it.
func keysVolume(secret string) corev1.Volume {
	file := func(key, path string, mode int32) corev1.KeyToPath {
		return corev1.KeyToPath{Key: key, Path: path, Mode: ptr.To(mode)}
	}
	return corev1.Volume{Name: sshVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName:  secret,
		DefaultMode: ptr.To(int32(0o400)),
		Items: []corev1.KeyToPath{
			file(sshkey.Private, sshkey.PrivateFile, 0o640),
			file(sshkey.Public, sshkey.PublicFile, 0o644),
			file(sshkey.Public, sshkey.AuthorizedFile, 0o644),
		},
	}}}
}

// hostsVolume has the host file.
func hostsVolume(configMap string) corev1.Volume {
	return corev1.Volume{Name: hostFileVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap},
		Items:                []corev1.KeyToPath{{Key: hostFileName, Path: hostFileName, Mode: ptr.To(int32(0o444))}},
	}}}
}

// setVolume sets a volume, replacing one of the same name.
func setVolume(pod *corev1.PodSpec, v corev1.Volume) {
	pod.Volumes = append(slices.DeleteFunc(pod.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name }), v)
}

// setMount sets a mount, replacing one of the same volume.
func setMount(c *corev1.Container, m corev1.VolumeMount) {
	c.VolumeMounts = append(slices.DeleteFunc(c.VolumeMounts, func(have corev1.VolumeMount) bool { return have.Name == m.Name }), m)
}
