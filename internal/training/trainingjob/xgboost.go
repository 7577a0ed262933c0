// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// XGBoost is the Framework of XGBoostJobs: XGBoost, whose tracker runs in the
// master, and LightGBM, which wants the addresses of all workers.
type XGBoost struct{ plain }

// New implements Framework.
func (XGBoost) New() v1.Job { return &v1.XGBoostJob{} }

// Lead implements Framework.
func (XGBoost) Lead(v1.Job) v1.ReplicaType { return v1.Master }

// Master implements Framework.
func (XGBoost) Master(_ v1.Job, r Replica) bool { return r.Type == v1.Master }

// Done implements Framework.
func (XGBoost) Done(job v1.Job, pods map[Replica]*corev1.Pod) bool {
	return allSucceeded(job, v1.Master, pods)
}

// InStep implements Framework.
func (XGBoost) InStep(v1.Job) bool { return true }

// Connect implements Framework.
func (XGBoost) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	t, all := job.Traits(), total(job)
	vars := []corev1.EnvVar{
		{Name: "MASTER_PORT", Value: strconv.Itoa(int(t.ListensOn(job.Replicas()[v1.Master])))},
		{Name: "MASTER_ADDR", Value: v1.ReplicaName(job.GetName(), v1.Master, 0)},
		{Name: "WORLD_SIZE", Value: strconv.Itoa(all)},
		{Name: "RANK", Value: strconv.Itoa(rankAfterMaster(job, r))},
		unbuffered,
	}
	if all > 1 {
		workers := make([]string, all-1)
		for i := range workers {
			workers[i] = v1.ReplicaName(job.GetName(), v1.Worker, i)
		}
		vars = append(vars,
			corev1.EnvVar{Name: "WORKER_PORT", Value: strconv.Itoa(int(t.ListensOn(job.Replicas()[v1.Worker])))},
			corev1.EnvVar{Name: "WORKER_ADDRS", Value: strings.Join(workers, ",")})
	}
	addEnv(&pod.Spec, vars)
}
