// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/training/sshkey"
)

// Of an MPIJob of v2beta1: where its keys are, and what its workers run.
const (
	sshVolume = "ssh-auth"
	sshd      = "/usr/sbin/sshd"
	mpiRole   = "K_MPI_JOB_ROLE"
)

// v2beta1 returns a job that is an MPIJob of v2beta1, nil for any other.
func v2beta1(job v1.Job) *v1.MPIJob {
	if j, ok := job.(*v1.MPIJob); ok && j.IsV2beta1() {
		return j
	}
	return nil
}

// launcherWorks reports whether processes run in the launcher too.
func launcherWorks(j *v1.MPIJob) bool { return ptr.Deref(j.Spec.RunLauncherAsWorker, false) }

// roleLabels are the labels of the Pods of an MPIJob of v2beta1, in addition to
// the job's. If the launcher is a worker, it is the first.
func roleLabels(j *v1.MPIJob, r Replica) map[string]string {
	set := map[string]string{v1.LabelJobRole: strings.ToLower(string(r.Type))}
	switch {
	case r.Type == v1.Worker && launcherWorks(j):
		set[v1.LabelReplicaIndex] = strconv.Itoa(r.Index + 1)
	case r.Type == v1.Worker || launcherWorks(j):
		set[v1.LabelReplicaIndex] = strconv.Itoa(r.Index)
	}
	return set
}

// connectBySSH connects the Pods of an MPIJob of v2beta1: all have the same
// keys; the launcher has the list of workers.
func connectBySSH(j *v1.MPIJob, r Replica, pod *corev1.PodTemplateSpec) {
	spec, main := &pod.Spec, &pod.Spec.Containers[0]
	spec.Hostname = v1.ReplicaName(j.Name, r.Type, r.Index)
	spec.Subdomain = j.Name
	if spec.HostNetwork {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	main.Env = append(main.Env, corev1.EnvVar{Name: mpiRole, Value: strings.ToLower(string(r.Type))})
	if r.Type == v1.Worker {
		// Workers of Intel MPI and MPICH look for the launcher by its bare name.
		if spec.DNSConfig == nil {
			spec.DNSConfig = &corev1.PodDNSConfig{}
		}
		spec.DNSConfig.Searches = append(spec.DNSConfig.Searches, fmt.Sprintf("%s.%s.svc.cluster.local", j.Name, j.Namespace))
		if len(main.Command) == 0 && len(main.Args) == 0 {
			main.Command = []string{sshd, "-De"}
		}
		mountKeys(j, spec)
		return
	}
	main.Env = append(main.Env, implementationEnv(j)...)
	if !launcherWorks(j) {
		main.Env = append(main.Env, corev1.EnvVar{Name: "NVIDIA_VISIBLE_DEVICES"}, corev1.EnvVar{Name: "NVIDIA_DRIVER_CAPABILITIES"})
	}
	mountKeys(j, spec)
	spec.Volumes = append(spec.Volumes, mpiConfig(j, mpiHostfile, mpiDiscover))
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: mpiVolume, MountPath: mpiDir})
}

// implementationEnv tells an implementation of MPI where the workers are, how
// many processes each takes, and to try more than once to reach one.
func implementationEnv(j *v1.MPIJob) []corev1.EnvVar {
	const patience = "-o ConnectionAttempts=10"
	hosts, slots := mpiDir+"/"+mpiHostfile, strconv.Itoa(int(*j.Spec.SlotsPerWorker))
	switch j.Spec.MPIImplementation {
	case v1.IntelMPI:
		return []corev1.EnvVar{
			{Name: "I_MPI_HYDRA_HOST_FILE", Value: hosts},
			{Name: "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", Value: patience},
			{Name: "I_MPI_PERHOST", Value: slots},
		}
	case v1.MPICH:
		return []corev1.EnvVar{
			{Name: "HYDRA_HOST_FILE", Value: hosts},
			{Name: "HYDRA_LAUNCH_EXTRA_ARGS", Value: patience},
			{Name: "HYDRA_LAUNCHER_EXTRA_ARGS", Value: patience}, // which MPICH reads
		}
	default:
		return []corev1.EnvVar{
			{Name: "OMPI_MCA_orte_keep_fqdn_hostnames", Value: "true"},
			{Name: "OMPI_MCA_orte_default_hostfile", Value: hosts},
			{Name: "OMPI_MCA_plm_rsh_args", Value: patience},
			{Name: "OMPI_MCA_orte_set_default_slots", Value: slots},
		}
	}
}

// mountKeys gives the first container of a Pod the job's keys. root's must not be
// readable by others; other users could not read them then.
func mountKeys(j *v1.MPIJob, pod *corev1.PodSpec) {
	var mode *int32
	if j.Spec.SSHAuthMountPath == v1.DefaultSSHAuthMountPath {
		mode = ptr.To[int32](0o600)
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: sshVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: keysName(j), DefaultMode: mode,
		Items: []corev1.KeyToPath{
			{Key: sshkey.Private, Path: sshkey.PrivateFile},
			{Key: sshkey.Public, Path: sshkey.PublicFile},
			{Key: sshkey.Public, Path: sshkey.AuthorizedFile},
		},
	}}})
	main := &pod.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: sshVolume, MountPath: j.Spec.SSHAuthMountPath})
}

func keysName(j *v1.MPIJob) string { return j.Name + "-ssh" }

// objectsForSSH are what the Pods of an MPIJob of v2beta1 need: names, the list
// of workers, and keys, which are made when the Secret is created.
func objectsForSSH(j *v1.MPIJob, pods map[Replica]*corev1.Pod) []client.Object {
	set := map[string]string{"app": j.Name}
	return []client.Object{
		&corev1.Service{ObjectMeta: metadata(j, j.Name, set), Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: jobLabels(j),
			// A launcher that is a worker must be found before it is ready, which
			// it is when it has found the others.
			PublishNotReadyAddresses: launcherWorks(j),
		}},
		&corev1.ConfigMap{ObjectMeta: metadata(j, j.Name+"-config", set), Data: hostFiles(j, pods)},
		&corev1.Secret{ObjectMeta: metadata(j, keysName(j), set), Type: corev1.SecretTypeSSHAuth},
	}
}

// hostFiles are the list of workers, and a script that prints those that run now,
// for Horovod's elastic launcher.
func hostFiles(j *v1.MPIJob, pods map[Replica]*corev1.Pod) map[string]string {
	var all, running strings.Builder
	running.WriteString("#!/bin/sh\n")
	add := func(r Replica, runs bool) {
		name := v1.ReplicaName(j.Name, r.Type, r.Index)
		host := name + "." + j.Name + serviceSuffix(j.Namespace)
		if r.Type == v1.MPILauncher && j.Spec.MPIImplementation == v1.IntelMPI {
			host = name // else it would not know itself, and reach itself by ssh
		}
		if j.Spec.MPIImplementation == v1.OpenMPI {
			fmt.Fprintf(&all, "%s slots=%d\n", host, *j.Spec.SlotsPerWorker)
		} else {
			fmt.Fprintf(&all, "%s:%d\n", host, *j.Spec.SlotsPerWorker)
		}
		if runs {
			fmt.Fprintf(&running, "echo %s\n", host)
		}
	}
	if launcherWorks(j) {
		add(Replica{v1.MPILauncher, 0}, true)
	}
	for _, r := range replicasOf(j, v1.Worker) {
		p := pods[r]
		add(r, p != nil && p.Status.Phase == corev1.PodRunning)
	}
	return map[string]string{mpiHostfile: all.String(), mpiDiscover: running.String()}
}
