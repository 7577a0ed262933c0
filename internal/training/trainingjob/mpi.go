// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// MPI is the Framework of MPIJobs. In one of v1 mpirun in the launcher starts its
// daemons in the workers through /etc/mpi/kubexec.sh, which is `kubectl exec`;
// kubectl comes by an init container, and the right to use it by a service
// account. In one of v2beta1 it starts them by ssh.
type MPI struct{ plain }

// The file locations for mpirun.
const (
	mpiDir       = "/etc/mpi"
	mpiVolume    = "mpi-job-config"
	mpiKubexec   = "kubexec.sh"
	mpiHostfile  = "hostfile"
	mpiHydraFile = "hydra-hostfile"
	mpiDiscover  = "discover_hosts.sh"
	kubectlDir   = "/opt/kube"
	kubectlName  = "mpi-job-kubectl"
	kubectlImage = "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest"
)

// podInterface is the network interface of a Pod, as runtimes name it.
const podInterface = "eth0"

// mpiRoleLabel is an older operator's label, which Katib's example uses to
// select the launcher.
const mpiRoleLabel = "mpi-job-role"

// New implements Framework.
func (MPI) New() v1.Job { return &v1.MPIJob{} }

// Lead implements Framework.
func (MPI) Lead(v1.Job) v1.ReplicaType { return v1.MPILauncher }

// Master implements Framework.
func (MPI) Master(job v1.Job, r Replica) bool {
	return r.Type == v1.MPILauncher && v2beta1(job) == nil
}

// Named implements Framework: mpirun reaches workers through the API server.
func (MPI) Named() bool { return false }

// Done implements Framework. Workers keep running until they are cleaned up.
func (MPI) Done(job v1.Job, pods map[Replica]*corev1.Pod) bool {
	return allSucceeded(job, v1.MPILauncher, pods)
}

// Connect implements Framework. As with the training operator it is the first
// container that runs MPI, whatever its name.
func (MPI) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	if j := v2beta1(job); j != nil {
		connectBySSH(j, r, pod)
		return
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[mpiRoleLabel] = strings.ToLower(string(r.Type))
	main := &pod.Spec.Containers[0]
	config := corev1.VolumeMount{Name: mpiVolume, MountPath: mpiDir}
	if r.Type != v1.MPILauncher {
		if len(main.Command) == 0 {
			main.Command, main.Args = []string{"sleep"}, []string{"365d"}
		}
		// Open MPI looks for the script in every rank.
		main.VolumeMounts = append(main.VolumeMounts, config)
		pod.Spec.Volumes = append(pod.Spec.Volumes, mpiConfig(job, mpiKubexec))
		return
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = launcherName(job)
	}
	kubectl := corev1.VolumeMount{Name: kubectlName, MountPath: kubectlDir}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, deliverKubectl(job, kubectl, config))
	main.Env = append(main.Env, launcherEnv(job.(*v1.MPIJob), pod.Spec.HostNetwork, main)...)
	main.VolumeMounts = append(main.VolumeMounts, kubectl, config)
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: kubectlName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		mpiConfig(job, mpiKubexec, mpiHostfile, mpiHydraFile, mpiDiscover))
}

// launcherName is the name of the launcher's Pod, service account and role.
func launcherName(job v1.Job) string { return v1.ReplicaName(job.GetName(), v1.MPILauncher, 0) }

// launcherEnv returns the variables for Open MPI and Intel MPI with the workers,
// and how to reach them. A launcher that requests no GPU sees none. Intel MPI
// cannot read Open MPI's host file, and without one would run every process in the
// launcher; its workers know no name of the launcher's, but find the address of its
// interface.
func launcherEnv(j *v1.MPIJob, hostNetwork bool, main *corev1.Container) []corev1.EnvVar {
	vars := []corev1.EnvVar{
		{Name: "OMPI_MCA_plm_rsh_agent", Value: mpiDir + "/" + mpiKubexec},
		{Name: "OMPI_MCA_orte_default_hostfile", Value: mpiDir + "/" + mpiHostfile},
	}
	if !asksForGPU(main) {
		vars = append(vars, corev1.EnvVar{Name: "NVIDIA_VISIBLE_DEVICES"}, corev1.EnvVar{Name: "NVIDIA_DRIVER_CAPABILITIES"})
	}
	intel := []corev1.EnvVar{
		{Name: "I_MPI_HYDRA_BOOTSTRAP", Value: "rsh"},
		{Name: "I_MPI_HYDRA_BOOTSTRAP_EXEC", Value: mpiDir + "/" + mpiKubexec},
		{Name: "I_MPI_HYDRA_HOST_FILE", Value: mpiDir + "/" + mpiHydraFile},
		{Name: "I_MPI_PERHOST", Value: strconv.Itoa(int(*j.Spec.SlotsPerWorker))},
	}
	if !hostNetwork { // where the name is the node's
		intel = append(intel, corev1.EnvVar{Name: "I_MPI_HYDRA_IFACE", Value: podInterface})
	}
	for _, v := range intel {
		if !slices.ContainsFunc(main.Env, func(own corev1.EnvVar) bool { return own.Name == v.Name }) {
			vars = append(vars, v)
		}
	}
	return vars
}

func asksForGPU(c *corev1.Container) bool {
	for name := range c.Resources.Limits {
		if strings.Contains(string(name), "nvidia.com/gpu") || strings.Contains(string(name), "nvidia.com/mig-") {
			return true
		}
	}
	return false
}

// deliverKubectl is the container that puts kubectl where the launcher finds it.
func deliverKubectl(job v1.Job, mounts ...corev1.VolumeMount) corev1.Container {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("100m"),
		corev1.ResourceMemory:           resource.MustParse("512Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("5Gi"),
	}
	return corev1.Container{
		Name: "kubectl-delivery", Image: kubectlImage, ImagePullPolicy: corev1.PullIfNotPresent,
		Env:          []corev1.EnvVar{{Name: "TARGET_DIR", Value: kubectlDir}, {Name: "NAMESPACE", Value: job.GetNamespace()}},
		VolumeMounts: mounts,
		Resources:    corev1.ResourceRequirements{Limits: amounts, Requests: amounts.DeepCopy()},
	}
}

// mpiConfig is the volume with some of the job's files.
func mpiConfig(job v1.Job, files ...string) corev1.Volume {
	items := make([]corev1.KeyToPath, len(files))
	for i, file := range files {
		mode := int32(0o555)
		if file == mpiHostfile || file == mpiHydraFile {
			mode = 0o444
		}
		items[i] = corev1.KeyToPath{Key: file, Path: file, Mode: &mode}
	}
	return corev1.Volume{Name: mpiVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: job.GetName() + "-config"}, Items: items,
	}}}
}

// Objects implements Framework: the files, and the right to exec in the workers.
func (MPI) Objects(job v1.Job, pods map[Replica]*corev1.Pod) []client.Object {
	j := job.(*v1.MPIJob)
	if j.IsV2beta1() {
		return objectsForSSH(j, pods)
	}
	name := launcherName(job)
	object := func(name string) metav1.ObjectMeta { return metadata(job, name, map[string]string{"app": j.Name}) }
	config := &corev1.ConfigMap{ObjectMeta: object(j.Name + "-config"), Data: mpiFiles(j, pods)}
	var workers []string
	for _, r := range replicasOf(j, v1.Worker) {
		workers = append(workers, v1.ReplicaName(j.Name, r.Type, r.Index))
	}
	account := j.Spec.MPIReplicaSpecs[v1.MPILauncher].Template.Spec.ServiceAccountName
	objects := []client.Object{config}
	if account == "" {
		account = name
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: object(name)})
	}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	if len(workers) > 0 { // no names would mean all
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/exec"}, ResourceNames: workers})
	}
	return append(objects,
		&rbacv1.Role{ObjectMeta: object(name), Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: object(name),
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: j.Namespace}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		})
}

// Owns implements Framework.
func (MPI) Owns() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	}
}

// mpiFiles are what the launcher reads: the workers, how to reach one, and which
// run now, for Horovod's elastic launcher.
func mpiFiles(j *v1.MPIJob, pods map[Replica]*corev1.Pod) map[string]string {
	slots := *j.Spec.SlotsPerWorker
	container := ""
	if j.Spec.MainContainer != "" {
		container = " --container " + j.Spec.MainContainer
	}
	var hosts, hydra, running strings.Builder
	running.WriteString("#!/bin/sh")
	add := func(name string) {
		fmt.Fprintf(&hosts, "%s slots=%d\n", name, slots)
		fmt.Fprintf(&hydra, "%s:%d\n", name, slots)
	}
	if asksForGPU(&j.Spec.MPIReplicaSpecs[v1.MPILauncher].Template.Spec.Containers[0]) {
		add(launcherName(j))
		fmt.Fprintf(&running, "\necho %s:%d\n", launcherName(j), slots)
	}
	for _, r := range replicasOf(j, v1.Worker) {
		name := v1.ReplicaName(j.Name, r.Type, r.Index)
		add(name)
		if p := pods[r]; p != nil && p.Status.Phase == corev1.PodRunning {
			fmt.Fprintf(&running, "\necho %s:%d", name, slots)
		}
	}
	return map[string]string{
		mpiHostfile:  hosts.String(),
		mpiHydraFile: hydra.String(),
		mpiDiscover:  running.String(),
		mpiKubexec:   fmt.Sprintf("#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n%s/kubectl exec ${POD_NAME}%s -- /bin/sh -c \"$*\"", kubectlDir, container),
	}
}
