// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

const tensorflowMnist = `{kind: MPIJob, metadata: {name: tensorflow-mnist}, spec: {slotsPerWorker: 1, MORE mpiReplicaSpecs: {
	Launcher: {replicas: 1, template: {spec: {containers: [{name: any, image: i, LIMITS command: [mpirun]}]}}},
	Worker: {replicas: 2, template: {spec: {containers: [{name: any, image: i}]}}}}}}`

func TestMPIObjects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, more, limits, hostfile, kubexec, discover string }{
		"Plain": {
			reason:   "mpirun reaches workers by kubectl exec; one that does not run is not discovered",
			hostfile: "tensorflow-mnist-worker-0 slots=1\ntensorflow-mnist-worker-1 slots=1\n",
			kubexec:  "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c \"$*\"",
			discover: "#!/bin/sh\necho tensorflow-mnist-worker-1:1",
		},
		"MainContainer": {
			reason: "in the container that the user names", more: "mainContainer: train,",
			hostfile: "tensorflow-mnist-worker-0 slots=1\ntensorflow-mnist-worker-1 slots=1\n",
			kubexec:  "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} --container train -- /bin/sh -c \"$*\"",
			discover: "#!/bin/sh\necho tensorflow-mnist-worker-1:1",
		},
		"GPU": {
			reason: "a launcher with a GPU takes part", limits: "resources: {limits: {nvidia.com/gpu: 1}},",
			hostfile: "tensorflow-mnist-launcher slots=1\ntensorflow-mnist-worker-0 slots=1\ntensorflow-mnist-worker-1 slots=1\n",
			kubexec:  "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c \"$*\"",
			discover: "#!/bin/sh\necho tensorflow-mnist-launcher:1\n\necho tensorflow-mnist-worker-1:1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, strings.NewReplacer("MORE", tc.more, "LIMITS", tc.limits).Replace(tensorflowMnist))
			pods := map[Replica]*corev1.Pod{
				{v1.Worker, 0}: podOf(t, f, job, "worker-0 Pending"),
				{v1.Worker, 1}: podOf(t, f, job, "worker-1 Running"),
			}
			objects := f.Objects(job, pods)
			want := map[string]string{"hostfile": tc.hostfile, "hydra-hostfile": strings.ReplaceAll(tc.hostfile, " slots=", ":"), "kubexec.sh": tc.kubexec, "discover_hosts.sh": tc.discover}
			config := objects[0].(*corev1.ConfigMap)
			if diff := cmp.Diff(want, config.Data); diff != "" || config.Name != "tensorflow-mnist-config" {
				t.Errorf("%s: %s (-want +got)\n%s", tc.reason, config.Name, diff)
			}
			role := objects[2].(*rbacv1.Role)
			if diff := cmp.Diff([]string{"tensorflow-mnist-worker-0", "tensorflow-mnist-worker-1"}, role.Rules[1].ResourceNames); diff != "" {
				t.Errorf("the launcher may exec in other Pods than the workers (-want +got)\n%s", diff)
			}
		})
	}
}

func TestMPIPods(t *testing.T) {
	t.Parallel()
	f, job := read(t, strings.NewReplacer("MORE", "", "LIMITS", "").Replace(tensorflowMnist))
	launcher := newPod(f, job, Replica{v1.MPILauncher, 0})
	want := []string{
		"OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh", "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
		"NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES=",
		"I_MPI_HYDRA_BOOTSTRAP=rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh",
		"I_MPI_HYDRA_HOST_FILE=/etc/mpi/hydra-hostfile", "I_MPI_PERHOST=1", "I_MPI_HYDRA_IFACE=eth0",
	}
	if diff := cmp.Diff(want, environment(launcher)); diff != "" {
		t.Errorf("the launcher's environment (-want +got)\n%s", diff)
	}
	if launcher.Name != "tensorflow-mnist-launcher" || launcher.Labels[v1.LabelJobRole] != "master" || launcher.Spec.ServiceAccountName != "tensorflow-mnist-launcher" {
		t.Errorf("the launcher is %s, %q, of %q", launcher.Name, launcher.Labels[v1.LabelJobRole], launcher.Spec.ServiceAccountName)
	}
	worker := newPod(f, job, Replica{v1.Worker, 1})
	if got := strings.Join(append(worker.Spec.Containers[0].Command, worker.Spec.Containers[0].Args...), " "); got != "sleep 365d" || worker.Name != "tensorflow-mnist-worker-1" {
		t.Errorf("%s runs %q", worker.Name, got)
	}
	if items := worker.Spec.Volumes[0].ConfigMap.Items; len(items) != 1 || items[0].Key != "kubexec.sh" || *items[0].Mode != 0o555 {
		t.Errorf("a worker gets the files %v", items)
	}
	if p := decide(f, job, have{}, noon); len(p.createServices) != 0 || len(p.create) != 3 || len(p.objects) != 4 {
		t.Errorf("a new MPIJob gets %d Services, %d Pods and %d objects", len(p.createServices), len(p.create), len(p.objects))
	}
	_, alone := read(t, "{kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {serviceAccountName: mine, containers: [{name: any, image: i}]}}}}}}")
	for _, obj := range f.Objects(alone, nil) {
		if role, ok := obj.(*rbacv1.Role); ok && len(role.Rules) != 1 {
			t.Error("a launcher without workers may exec anywhere")
		}
		if _, ok := obj.(*corev1.ServiceAccount); ok {
			t.Error("a launcher with a service account gets another")
		}
	}
}
