// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// Paddle is the Framework of PaddleJobs: collective training of workers, or
// parameter servers, which are the masters. Programs are started by
// paddle.distributed.launch, whose meeting point is replica 0.
type Paddle struct{ plain }

// New implements Framework.
func (Paddle) New() v1.Job { return &v1.PaddleJob{} }

// Lead implements Framework.
func (Paddle) Lead(job v1.Job) v1.ReplicaType { return first(job, v1.Master, v1.Worker) }

// Master implements Framework.
func (Paddle) Master(_ v1.Job, r Replica) bool { return r.Type == v1.Master }

// Done implements Framework.
func (f Paddle) Done(job v1.Job, pods map[Replica]*corev1.Pod) bool {
	return allSucceeded(job, f.Lead(job), pods)
}

// InStep implements Framework: masters are parameter servers.
func (Paddle) InStep(job v1.Job) bool { return job.Replicas()[v1.Master] == nil }

// Connect implements Framework. The meeting point itself goes by its address,
// because it must not wait for its own name.
func (f Paddle) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	t, lead := job.Traits(), f.Lead(job)
	port := cmp.Or(t.ListensOn(job.Replicas()[lead]), t.Port)
	vars := []corev1.EnvVar{
		unbuffered,
		{Name: "PADDLE_JOB_ID", Value: job.GetName()},
		{Name: "PADDLE_NNODES", Value: strconv.Itoa(total(job))},
	}
	if r.Type == lead && r.Index == 0 {
		vars = append(vars,
			corev1.EnvVar{Name: "POD_IP_DUMMY", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			corev1.EnvVar{Name: "PADDLE_MASTER", Value: fmt.Sprintf("$(POD_IP_DUMMY):%d", port)})
	} else {
		vars = append(vars, corev1.EnvVar{Name: "PADDLE_MASTER", Value: fmt.Sprintf("%s:%d", v1.ReplicaName(job.GetName(), lead, 0), port)})
	}
	switch {
	case lead == v1.Master && r.Type == v1.Master:
		vars = append(vars, corev1.EnvVar{Name: "PADDLE_SERVER_NUM", Value: "1"})
	case lead == v1.Master:
		vars = append(vars, corev1.EnvVar{Name: "PADDLE_TRAINER_NUM", Value: "1"})
	}
	addEnv(&pod.Spec, vars)
}
