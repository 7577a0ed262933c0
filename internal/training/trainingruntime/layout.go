// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// replicatedJob is the replicated job of that name, nil without one.
func (l *layout) replicatedJob(name string) *v1alpha2.ReplicatedJob {
	for i := range l.set.ReplicatedJobs {
		if r := &l.set.ReplicatedJobs[i]; r.Name == name {
			return r
		}
	}
	return nil
}

// ancestor is the replicated job that is for that part of a TrainJob.
func (l *layout) ancestor(part string) *v1alpha2.ReplicatedJob {
	for i := range l.set.ReplicatedJobs {
		if r := &l.set.ReplicatedJobs[i]; r.Template.Labels[v1alpha1.LabelAncestor] == part {
			return r
		}
	}
	return nil
}

// node is the container in which the job's program runs, nil without one.
func (l *layout) node() *corev1.Container {
	if r := l.ancestor(v1alpha1.AncestorTrainer); r != nil {
		return container(r, v1alpha1.Node)
	}
	return nil
}

// container is a container of a replicated job's Pods, nil without one.
func container(r *v1alpha2.ReplicatedJob, name string) *corev1.Container {
	pod := &r.Template.Spec.Template.Spec
	for _, list := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// launcherIsNode reports whether mpirun's launcher trains too.
func (l *layout) launcherIsNode() bool {
	return l.policy.MPI != nil && ptr.Deref(l.policy.MPI.RunLauncherAsNode, false)
}

// numNodes is how many nodes train together.
func (l *layout) numNodes() int32 {
	if t := l.job.Spec.Trainer; t != nil && t.NumNodes != nil {
		return *t.NumNodes
	}
	return ptr.Deref(l.policy.NumNodes, 1)
}

// scale gives each replicated job its number of Pods. With MPI the trainer's is
// the launcher, of which there is one, and its nodes are those named node.
func (l *layout) scale() {
	trainer := l.ancestor(v1alpha1.AncestorTrainer)
	for i := range l.set.ReplicatedJobs {
		r := &l.set.ReplicatedJobs[i]
		job := &r.Template.Spec
		pods := ptr.Deref(job.Parallelism, 1)
		switch {
		case l.policy.MPI != nil && r.Name == v1alpha1.Launcher:
			pods = 1
		case l.policy.MPI != nil && r.Name == v1alpha1.Node:
			pods = l.numNodes()
			if l.launcherIsNode() && l.replicatedJob(v1alpha1.Launcher) != nil {
				pods = max(pods-1, 0)
			}
		case r == trainer:
			pods = l.numNodes()
		case job.Completions != nil:
			continue // it is no gang
		}
		job.Parallelism, job.Completions = ptr.To(pods), ptr.To(pods)
	}
}

// pods is the number of Pods of a replicated job's Jobs.
func pods(r *v1alpha2.ReplicatedJob) int { return int(ptr.Deref(r.Template.Spec.Completions, 1)) }

// subdomain is what host names end in.
func (l *layout) subdomain() string {
	if n := l.set.Network; n != nil && n.Subdomain != "" {
		return n.Subdomain
	}
	return l.job.Name
}

// hosts are the names of a replicated job's Pods.
func (l *layout) hosts(r *v1alpha2.ReplicatedJob) []string {
	var hosts []string
	for job := range r.Count() {
		for pod := range pods(r) {
			hosts = append(hosts, v1alpha2.HostName(l.job.Name, r.Name, job, pod, l.subdomain()))
		}
	}
	return hosts
}

// master is the host name of the first node.
func (l *layout) master() string {
	return v1alpha2.HostName(l.job.Name, l.ancestor(v1alpha1.AncestorTrainer).Name, 0, 0, l.subdomain())
}

// gpus is how many GPUs a node has: those that the job asks for, else its
// runtime's.
func (l *layout) gpus() int {
	if t := l.job.Spec.Trainer; t != nil && t.ResourcesPerNode != nil {
		if n := accelerators(*t.ResourcesPerNode); n > 0 {
			return n
		}
	}
	return accelerators(l.perNode())
}

// accelerators is how many GPUs resources have.
func accelerators(r corev1.ResourceRequirements) int {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if quantity := list[name]; strings.Contains(strings.ToLower(string(name)), "gpu") && quantity.Value() > 0 {
				return int(quantity.Value())
			}
		}
	}
	return 0
}

// processors is how many processors a node asks for, or may have; 0 when it says
// neither.
func processors(r corev1.ResourceRequirements) int {
	if q := r.Requests.Cpu(); !q.IsZero() {
		return int(q.Value())
	}
	return int(r.Limits.Cpu().Value())
}

// setEnv sets variables: each replaces one of the same name, or is appended.
func setEnv(env *[]corev1.EnvVar, vars ...corev1.EnvVar) {
next:
	for _, v := range vars {
		for i := range *env {
			if (*env)[i].Name == v.Name {
				(*env)[i] = v
				continue next
			}
		}
		*env = append(*env, v)
	}
}

// nodeRank is a variable that has a Pod's number, from 0.
func nodeRank(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"},
	}}
}

// listen declares the port on which the first node listens.
func listen(c *corev1.Container) {
	for _, p := range c.Ports {
		if p.ContainerPort == port {
			return
		}
	}
	c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port})
}

// with is a map with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}
