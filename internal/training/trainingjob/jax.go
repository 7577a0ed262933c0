// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// JAX is the Framework of JAXJobs, whose programs call
// jax.distributed.initialize with these variables. Worker 0 coordinates.
type JAX struct{ plain }

// New implements Framework.
func (JAX) New() v1.Job { return &v1.JAXJob{} }

// Lead implements Framework.
func (JAX) Lead(v1.Job) v1.ReplicaType { return v1.Worker }

// Master implements Framework.
func (JAX) Master(_ v1.Job, r Replica) bool { return r.Index == 0 }

// Done implements Framework.
func (JAX) Done(job v1.Job, pods map[Replica]*corev1.Pod) bool {
	return allSucceeded(job, v1.Worker, pods)
}

// InStep implements Framework.
func (JAX) InStep(v1.Job) bool { return true }

// Connect implements Framework.
func (JAX) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	addEnv(&pod.Spec, []corev1.EnvVar{
		unbuffered,
		{Name: "COORDINATOR_PORT", Value: strconv.Itoa(int(job.Traits().ListensOn(job.Replicas()[v1.Worker])))},
		{Name: "COORDINATOR_ADDRESS", Value: v1.ReplicaName(job.GetName(), v1.Worker, 0)},
		{Name: "NUM_PROCESSES", Value: strconv.Itoa(total(job))},
		{Name: "PROCESS_ID", Value: strconv.Itoa(r.Index)},
	})
}
