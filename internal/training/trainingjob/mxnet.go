// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// MXNet is the Framework of MXJobs: MXNet and BytePS, which find each other by
// the scheduler, and the tuner of TVM, which reads MX_CONFIG.
type MXNet struct{ plain }

// New implements Framework.
func (MXNet) New() v1.Job { return &v1.MXJob{} }

// Lead implements Framework. A job that tunes ends with the tuner.
func (MXNet) Lead(job v1.Job) v1.ReplicaType {
	return first(job, v1.MXScheduler, v1.MXTuner, v1.MXWorker)
}

// Master implements Framework.
func (MXNet) Master(_ v1.Job, r Replica) bool { return r.Type == v1.MXServer }

// Done implements Framework.
func (f MXNet) Done(job v1.Job, pods map[Replica]*corev1.Pod) bool {
	return allSucceeded(job, f.Lead(job), pods)
}

// mxTunerServerKey is the annotation of a Pod template that names the kind of
// devices of a TVM tuning server.
const mxTunerServerKey = "tuner-server-key"

type mxAddress struct {
	URL  string `json:"url"`
	Port int    `json:"port"`
}

// Connect implements Framework.
func (MXNet) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	var config struct {
		Cluster map[string][]mxAddress `json:"cluster"`
		Labels  map[string]string      `json:"labels"`
		Task    tfTask                 `json:"task"`
	}
	config.Cluster, config.Labels = map[string][]mxAddress{}, map[string]string{}
	for t, spec := range job.Replicas() {
		name := strings.ToLower(string(t))
		config.Labels[name] = spec.Template.Annotations[mxTunerServerKey]
		config.Cluster[name] = []mxAddress{}
		for i := range int(*spec.Replicas) {
			config.Cluster[name] = append(config.Cluster[name], mxAddress{v1.ReplicaName(job.GetName(), t, i), int(job.Traits().ListensOn(spec))})
		}
	}
	config.Task = tfTask{Type: strings.ToLower(string(r.Type)), Index: r.Index}
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	var root mxAddress
	if schedulers := config.Cluster["scheduler"]; len(schedulers) > 0 {
		root = schedulers[0]
	}
	vars := []corev1.EnvVar{
		{Name: "MX_CONFIG", Value: string(text)},
		{Name: "DMLC_PS_ROOT_PORT", Value: strconv.Itoa(root.Port)},
		{Name: "DMLC_PS_ROOT_URI", Value: root.URL},
		{Name: "DMLC_NUM_SERVER", Value: strconv.Itoa(len(config.Cluster["server"]))},
		{Name: "DMLC_NUM_WORKER", Value: strconv.Itoa(len(config.Cluster["worker"]))},
		{Name: "DMLC_ROLE", Value: config.Task.Type},
		{Name: "DMLC_USE_KUBERNETES", Value: "1"},
	}
	if r.Type == v1.MXWorker {
		vars = append(vars, corev1.EnvVar{Name: "DMLC_WORKER_ID", Value: strconv.Itoa(r.Index)})
	}
	addEnv(&pod.Spec, vars)
}
