// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TensorFlow is the Framework of TFJobs, whose programs read TF_CONFIG.
type TensorFlow struct{ plain }

// New implements Framework.
func (TensorFlow) New() v1.Job { return &v1.TFJob{} }

// Lead implements Framework.
func (TensorFlow) Lead(job v1.Job) v1.ReplicaType {
	return first(job, v1.TFChief, v1.TFMaster, v1.TFWorker)
}

// Master implements Framework: the chief, or worker 0.
func (f TensorFlow) Master(job v1.Job, r Replica) bool {
	return r.Type == f.Lead(job) && (r.Type != v1.TFWorker || r.Index == 0)
}

// Done implements Framework. Parameter servers and evaluators are not waited
// for.
func (f TensorFlow) Done(job v1.Job, pods map[Replica]*corev1.Pod) bool {
	lead := f.Lead(job)
	if allSucceeded(job, lead, pods) {
		return true
	}
	if lead != v1.TFWorker || *job.(*v1.TFJob).Spec.SuccessPolicy == v1.SuccessAllWorkers {
		return false
	}
	chief := pods[Replica{v1.TFWorker, 0}]
	return chief != nil && chief.Status.Phase == corev1.PodSucceeded
}

// Tolerates implements Framework.
func (TensorFlow) Tolerates(job v1.Job, t v1.ReplicaType) bool {
	return t == v1.TFWorker && job.(*v1.TFJob).Spec.EnableDynamicWorker
}

// InStep implements Framework: with parameter servers, workers train
// asynchronously.
func (TensorFlow) InStep(job v1.Job) bool { return job.Replicas()[v1.TFPS] == nil }

// Connect implements Framework. A job of one replica is not distributed.
func (TensorFlow) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	if total(job) == 1 {
		return
	}
	config := corev1.EnvVar{Name: "TF_CONFIG", Value: tfConfig(job.(*v1.TFJob), r)}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == job.Traits().Container {
			c.Env = append(c.Env, config)
			return
		}
	}
}

// tfTask is which replica a program is.
type tfTask struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

// tfConfig is the value of TF_CONFIG. With dynamic workers a program knows only
// itself and the parameter servers.
func tfConfig(j *v1.TFJob, r Replica) string {
	task := tfTask{Type: strings.ToLower(string(r.Type)), Index: r.Index}
	var config any = struct {
		Cluster     map[string][]string `json:"cluster"`
		Task        tfTask              `json:"task"`
		Environment string              `json:"environment"`
	}{tfCluster(j), task, "cloud"}
	if j.Spec.EnableDynamicWorker {
		config = struct {
			Cluster tfSparseCluster `json:"cluster"`
			Task    tfTask          `json:"task"`
		}{tfSparse(tfCluster(j), r), task}
	}
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return string(text)
}

// tfCluster is where each replica listens, by its type in lower case.
func tfCluster(j *v1.TFJob) map[string][]string {
	suffix := serviceSuffix(j.Namespace)
	cluster := map[string][]string{}
	for t, spec := range j.Spec.TFReplicaSpecs {
		hosts := make([]string, *spec.Replicas)
		behind := suffix + ":" + strconv.Itoa(int(j.Traits().ListensOn(spec)))
		for i := range hosts {
			hosts[i] = v1.ReplicaName(j.Name, t, i) + behind
		}
		cluster[strings.ToLower(string(t))] = hosts
	}
	return cluster
}

// tfSparseCluster is what a program is told whose peers come and go.
type tfSparseCluster struct {
	Worker map[int]string `json:"worker"`
	PS     []string       `json:"ps"`
}

func tfSparse(cluster map[string][]string, r Replica) tfSparseCluster {
	sparse := tfSparseCluster{Worker: map[int]string{}, PS: []string{}}
	switch own := cluster[strings.ToLower(string(r.Type))]; r.Type {
	case v1.TFPS:
		sparse.PS = own[r.Index : r.Index+1]
	case v1.TFWorker:
		sparse.Worker[r.Index] = own[r.Index]
		sparse.PS = append(sparse.PS, cluster["ps"]...)
	}
	return sparse
}
