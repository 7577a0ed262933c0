// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TestPi holds the objects of the MPI operator's example to those that the MPI
// operator makes of it.
func TestPi(t *testing.T) {
	t.Parallel()
	f, j := readPi(t, "", "backoffLimit: 3, activeDeadlineSeconds: 600,", "")
	pods := map[Replica]*corev1.Pod{{v1.Worker, 0}: podOf(t, f, j, "worker-0 Pending"), {v1.Worker, 1}: podOf(t, f, j, "worker-1 Running")}
	objects := f.Objects(j, pods)
	service, config, secret := objects[0].(*corev1.Service), objects[1].(*corev1.ConfigMap), objects[2].(*corev1.Secret)
	selector := map[string]string{"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi"}
	if diff := cmp.Diff(corev1.ServiceSpec{ClusterIP: "None", Selector: selector}, service.Spec); diff != "" || service.Name != "pi" {
		t.Errorf("the Service %s (-want +got)\n%s", service.Name, diff)
	}
	files := map[string]string{
		"hostfile":          "pi-worker-0.pi.default.svc slots=1\npi-worker-1.pi.default.svc slots=1\n",
		"discover_hosts.sh": "#!/bin/sh\necho pi-worker-1.pi.default.svc\n",
	}
	if diff := cmp.Diff(files, config.Data); diff != "" || config.Name != "pi-config" {
		t.Errorf("the ConfigMap %s (-want +got)\n%s", config.Name, diff)
	}
	if secret.Name != "pi-ssh" || secret.Type != "kubernetes.io/ssh-auth" {
		t.Errorf("the Secret %s is of type %s", secret.Name, secret.Type)
	}
	for _, obj := range append(objects, newLauncher(f, j)) {
		if owner := obj.GetOwnerReferences()[0]; owner.APIVersion != "kubeflow.org/v2beta1" || owner.Kind != "MPIJob" || obj.GetLabels()["app"] != "pi" {
			t.Errorf("%T %s belongs to %+v, labels %v", obj, obj.GetName(), owner, obj.GetLabels())
		}
	}
	worker := newPod(f, j, Replica{v1.Worker, 1})
	if s := worker.Spec; worker.Name != "pi-worker-1" || s.Hostname != "pi-worker-1" || s.Subdomain != "pi" || s.RestartPolicy != "Never" ||
		!slices.Equal(s.DNSConfig.Searches, []string{"pi.default.svc.cluster.local"}) || strings.Join(s.Containers[0].Command, " ") != "/usr/sbin/sshd -De" {
		t.Errorf("a worker is %s: %+v", worker.Name, s)
	}
	launcher := newLauncher(f, j)
	if s := launcher.Spec; launcher.Name != "pi-launcher" || *s.PodReplacementPolicy != batchv1.Failed || *s.BackoffLimit != 3 || *s.ActiveDeadlineSeconds != 600 ||
		s.Template.Spec.Hostname != "pi-launcher" || s.Template.Spec.Subdomain != "pi" || s.Template.Spec.RestartPolicy != "OnFailure" {
		t.Errorf("the launcher is %s: %+v", launcher.Name, s)
	}
	role := func(role string, more ...string) map[string]string {
		set := maps.Clone(selector)
		set["training.kubeflow.org/job-role"] = role
		if len(more) > 0 {
			set["training.kubeflow.org/replica-index"] = more[0]
		}
		return set
	}
	if diff := cmp.Diff([]map[string]string{role("launcher"), role("worker", "1")}, []map[string]string{launcher.Spec.Template.Labels, worker.Labels}); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	files = map[string]string{"id_rsa": "ssh-privatekey", "id_rsa.pub": "ssh-publickey", "authorized_keys": "ssh-publickey"}
	for name, pod := range map[string]corev1.PodSpec{"launcher": launcher.Spec.Template.Spec, "worker": worker.Spec} {
		got := map[string]string{}
		for _, item := range pod.Volumes[0].Secret.Items {
			got[item.Path] = item.Key
		}
		if diff := cmp.Diff(files, got); diff != "" || pod.Volumes[0].Secret.DefaultMode != nil || pod.Containers[0].VolumeMounts[0].MountPath != "/home/mpiuser/.ssh" {
			t.Errorf("the keys of the %s (-want +got)\n%s", name, diff)
		}
	}
	f, j = readPi(t, "", "", "")
	j.Spec.SSHAuthMountPath = "/root/.ssh"
	if mode := newPod(f, j, Replica{v1.Worker, 0}).Spec.Volumes[0].Secret.DefaultMode; mode == nil || *mode != 0o600 {
		t.Errorf("root's keys have the mode %v", mode)
	}
}

func TestLauncherEnvironment(t *testing.T) {
	t.Parallel()
	none := []string{"NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES="}
	cases := map[string]struct {
		reason, more string
		env          []string
		hostfile     string
	}{
		"OpenMPI": {reason: "Open MPI", env: append([]string{
			"K_MPI_JOB_ROLE=launcher", "OMPI_MCA_orte_keep_fqdn_hostnames=true", "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
			"OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10", "OMPI_MCA_orte_set_default_slots=1",
		}, none...), hostfile: "pi-worker-0.pi.default.svc slots=1\npi-worker-1.pi.default.svc slots=1\n"},
		"Intel": {reason: "Intel MPI", more: "mpiImplementation: Intel, slotsPerWorker: 4,", env: append([]string{
			"K_MPI_JOB_ROLE=launcher", "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-o ConnectionAttempts=10", "I_MPI_PERHOST=4",
		}, none...), hostfile: "pi-worker-0.pi.default.svc:4\npi-worker-1.pi.default.svc:4\n"},
		"MPICH": {reason: "MPICH", more: "mpiImplementation: MPICH,", env: append([]string{
			"K_MPI_JOB_ROLE=launcher", "HYDRA_HOST_FILE=/etc/mpi/hostfile", "HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=10", "HYDRA_LAUNCHER_EXTRA_ARGS=-o ConnectionAttempts=10",
		}, none...), hostfile: "pi-worker-0.pi.default.svc:1\npi-worker-1.pi.default.svc:1\n"},
		"Works": {reason: "a launcher that is a worker may have GPUs, and is the first", more: "mpiImplementation: MPICH, runLauncherAsWorker: true,", env: []string{
			"K_MPI_JOB_ROLE=launcher", "HYDRA_HOST_FILE=/etc/mpi/hostfile", "HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=10", "HYDRA_LAUNCHER_EXTRA_ARGS=-o ConnectionAttempts=10",
		}, hostfile: "pi-launcher.pi.default.svc:1\npi-worker-0.pi.default.svc:1\npi-worker-1.pi.default.svc:1\n"},
		"IntelWorks": {reason: "Intel MPI knows itself by its host's name alone", more: "mpiImplementation: Intel, runLauncherAsWorker: true, slotsPerWorker: 1,", env: []string{
			"K_MPI_JOB_ROLE=launcher", "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-o ConnectionAttempts=10", "I_MPI_PERHOST=1",
		}, hostfile: "pi-launcher:1\npi-worker-0.pi.default.svc:1\npi-worker-1.pi.default.svc:1\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer("slotsPerWorker: 1, mpiImplementation: OpenMPI, MORE", tc.more+"MORE").Replace(pi)
			if tc.more == "" {
				text = pi
			}
			f, job := read(t, strings.NewReplacer("MORE", "", "RUN", "", "WORKER", "").Replace(text))
			j := job.(*v1.MPIJob)
			launcher := newLauncher(f, j)
			if diff := cmp.Diff(tc.env, environment(&corev1.Pod{Spec: launcher.Spec.Template.Spec})); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.hostfile, f.Objects(j, nil)[1].(*corev1.ConfigMap).Data["hostfile"]); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			index := launcher.Spec.Template.Labels[v1.LabelReplicaIndex] + newPod(f, j, Replica{v1.Worker, 1}).Labels[v1.LabelReplicaIndex]
			if want := map[bool]string{false: "1", true: "02"}[launcherWorks(j)]; index != want || f.Objects(j, nil)[0].(*corev1.Service).Spec.PublishNotReadyAddresses != launcherWorks(j) {
				t.Errorf("%s: the launcher's number and the second worker's are %q, want %q", tc.reason, index, want)
			}
		})
	}
}
