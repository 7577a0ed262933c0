// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// Replica is one replica of a job.
type Replica struct {
	Type  v1.ReplicaType
	Index int
}

// Framework is what is specific to a kind of job. It gets valid jobs of this
// kind with their defaults, and only reads them.
type Framework interface {
	// New returns an empty job.
	New() v1.Job

	// Lead is the replica type whose end is the end of the job, and whose
	// activity shows that the job runs.
	Lead(job v1.Job) v1.ReplicaType

	// Master reports whether a replica has the role of the master, whose log
	// clients read.
	Master(job v1.Job, r Replica) bool

	// Done reports whether the job has done its work, from how many replicas of
	// each type are in which state, and its Pods that count.
	Done(job v1.Job, pods map[Replica]*corev1.Pod) bool

	// Tolerates reports whether the job continues without replicas of a type
	// that failed permanently.
	Tolerates(job v1.Job, t v1.ReplicaType) bool

	// InStep reports whether all replicas of the job train together, so that one
	// that begins again waits for all others.
	InStep(job v1.Job) bool

	// Connect adds to a replica's Pod what its program needs to know of the
	// others.
	Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec)

	// Named reports whether each replica has a Service of its name.
	Named() bool

	// Objects are what else the job needs beside Pods and Services, given its
	// Pods that count. They belong to the job.
	Objects(job v1.Job, pods map[Replica]*corev1.Pod) []client.Object

	// Owns are the kinds of Objects that are watched, to be recreated when
	// deleted. Secrets are not: permission to list them is permission to read
	// them all.
	Owns() []schema.GroupVersionKind
}

// plain is a Framework's answers where a kind is like most.
type plain struct{}

func (plain) Tolerates(v1.Job, v1.ReplicaType) bool                   { return false }
func (plain) InStep(v1.Job) bool                                      { return false }
func (plain) Named() bool                                             { return true }
func (plain) Objects(v1.Job, map[Replica]*corev1.Pod) []client.Object { return nil }
func (plain) Owns() []schema.GroupVersionKind                         { return nil }
func (plain) Master(v1.Job, Replica) bool                             { return false }

// Frameworks returns one of each kind.
func Frameworks() []Framework {
	return []Framework{PyTorch{}, TensorFlow{}, XGBoost{}, Paddle{}, JAX{}, MXNet{}, MPI{}}
}

// first returns the first of the types that a job has replicas of, or the last.
func first(job v1.Job, types ...v1.ReplicaType) v1.ReplicaType {
	for _, t := range types {
		if job.Replicas()[t] != nil {
			return t
		}
	}
	return types[len(types)-1]
}

// total is the number of a job's replicas.
func total(job v1.Job) int {
	n := 0
	for _, spec := range job.Replicas() {
		n += int(*spec.Replicas)
	}
	return n
}

// replicasOf are a job's replicas of a type.
func replicasOf(job v1.Job, t v1.ReplicaType) []Replica {
	spec := job.Replicas()[t]
	if spec == nil {
		return nil
	}
	all := make([]Replica, *spec.Replicas)
	for i := range all {
		all[i] = Replica{t, i}
	}
	return all
}

// allSucceeded reports whether all replicas of a type have succeeded. A type
// without replicas has not.
func allSucceeded(job v1.Job, t v1.ReplicaType, pods map[Replica]*corev1.Pod) bool {
	spec := job.Replicas()[t]
	if spec == nil || *spec.Replicas == 0 {
		return false
	}
	return succeeded(t, pods) >= int(*spec.Replicas)
}

// succeeded is the number of replicas of a type that have succeeded.
func succeeded(t v1.ReplicaType, pods map[Replica]*corev1.Pod) int {
	n := 0
	for r, p := range pods {
		if r.Type == t && p.Status.Phase == corev1.PodSucceeded {
			n++
		}
	}
	return n
}

// serviceSuffix is what follows the name of a Service of a namespace.
func serviceSuffix(namespace string) string {
	suffix := "." + namespace + ".svc"
	if domain := os.Getenv("CUSTOM_CLUSTER_DOMAIN"); domain != "" {
		suffix += "." + domain
	}
	return suffix
}

// addEnv adds variables, in the order given, to each container.
func addEnv(pod *corev1.PodSpec, vars []corev1.EnvVar) {
	for i := range pod.Containers {
		pod.Containers[i].Env = append(pod.Containers[i].Env, vars...)
	}
}

// unbuffered disables Python's output buffering.
var unbuffered = corev1.EnvVar{Name: "PYTHONUNBUFFERED", Value: "1"}
