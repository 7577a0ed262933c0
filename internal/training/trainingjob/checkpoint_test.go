// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TestCheckpoint holds that a job has one directory, which all its Pods share and
// which stays when they go.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	const replica = `{replicas: 1, template: {spec: {initContainers: [{name: fetch, image: i}], containers: [{name: mpi, image: i}, {name: beside, image: i, env: [{name: CHECKPOINT_DIR, value: /mine}]}]}}}`
	for name, text := range map[string]string{
		"v1":      `{kind: MPIJob, spec: {runPolicy: {checkpoint: {storage: 1Gi}, SUSPEND}, mpiReplicaSpecs: {Launcher: ` + replica + `, Worker: ` + replica + `}}}`,
		"v2beta1": `{kind: MPIJob, apiVersion: kubeflow.org/v2beta1, spec: {mpiImplementation: OpenMPI, runPolicy: {checkpoint: {storage: 1Gi}, SUSPEND}, mpiReplicaSpecs: {Launcher: ` + replica + `, Worker: ` + replica + `}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, strings.ReplaceAll(text, "SUSPEND", "suspend: false"))
			var claim *corev1.PersistentVolumeClaim
			for _, o := range firstPlan(f, job).objects {
				if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
					claim = c
				}
			}
			if claim == nil || claim.Name != "j-checkpoint" || !metav1.IsControlledBy(claim, job) ||
				claim.Spec.Resources.Requests.Storage().String() != "1Gi" || !slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
				t.Fatalf("the claim is %+v", claim)
			}
			for _, r := range []Replica{{v1.MPILauncher, 0}, {v1.Worker, 0}} {
				checkMounted(t, claim.Name, &newPod(f, job, r).Spec)
			}
			f, job = read(t, strings.ReplaceAll(text, "SUSPEND", "suspend: true"))
			for _, o := range firstPlan(f, job).drop {
				if _, ok := o.(*corev1.PersistentVolumeClaim); ok {
					t.Error("the checkpoints of a suspended job are deleted")
				}
			}
		})
	}
}

func checkMounted(t *testing.T, claim string, pod *corev1.PodSpec) {
	t.Helper()
	i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
	if i < 0 {
		t.Fatalf("no volume is of %s: %+v", claim, pod.Volumes)
	}
	want := map[string]string{"fetch": "/checkpoint", "mpi": "/checkpoint", "beside": "/mine"}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		value, ours := want[c.Name]
		if !ours {
			continue // one that the operator adds
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == pod.Volumes[i].Name && m.MountPath == "/checkpoint"
		}) {
			t.Errorf("container %s has no checkpoints: %+v", c.Name, c.VolumeMounts)
		}
		var told []string
		for _, e := range c.Env {
			if e.Name == v1.EnvCheckpoint {
				told = append(told, e.Value)
			}
		}
		if !slices.Equal(told, []string{value}) {
			t.Errorf("container %s is told of %v, want %s", c.Name, told, value)
		}
	}
}

// firstPlan decides about a job of which there is nothing yet.
func firstPlan(f Framework, job v1.Job) plan {
	if j := v2beta1(job); j != nil {
		return decide(f, j, have{pods: nil, launcher: launcher{}}, noon)
	}
	return decide(f, job, have{}, noon)
}
