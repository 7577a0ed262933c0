// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/training/checkpoint"
)

// jobLabels are on all that belongs to a job.
func jobLabels(job v1.Job) map[string]string {
	return map[string]string{
		v1.LabelOperatorName: job.Traits().Controller,
		v1.LabelJobName:      strings.ReplaceAll(job.GetName(), "/", "-"),
	}
}

// selector selects the Pods of a replica type.
func selector(job v1.Job, t v1.ReplicaType) string {
	set := jobLabels(job)
	set[v1.LabelReplicaType] = strings.ToLower(string(t))
	return labels.Set(set).String()
}

// replicaLabels are on a replica's Pod and Service.
func replicaLabels(job v1.Job, r Replica) map[string]string {
	set := jobLabels(job)
	if j := v2beta1(job); j != nil {
		maps.Copy(set, roleLabels(j, r))
		return set
	}
	set[v1.LabelReplicaType] = strings.ToLower(string(r.Type))
	set[v1.LabelReplicaIndex] = strconv.Itoa(r.Index)
	return set
}

// replicaOf returns which replica an object belongs to, by its name, and
// reports whether the job needs that many.
func (d *decision) replicaOf(m *metav1.ObjectMeta) (Replica, bool) {
	for t, spec := range d.job.Replicas() {
		number := m.Name[strings.LastIndex(m.Name, "-")+1:]
		index, err := strconv.Atoi(number)
		if t == v1.MPILauncher {
			index, err = 0, nil
		}
		if err == nil && m.Name == v1.ReplicaName(d.job.GetName(), t, index) {
			return Replica{t, index}, index >= 0 && index < int(*spec.Replicas)
		}
	}
	return Replica{}, false
}

func metadata(job v1.Job, name string, labels map[string]string) metav1.ObjectMeta {
	gvk := job.Traits().GroupVersion().WithKind(job.Traits().Kind)
	return metav1.ObjectMeta{
		Namespace:       job.GetNamespace(),
		Name:            name,
		Labels:          labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, gvk)},
	}
}

// newPod makes a replica's Pod.
func newPod(f Framework, job v1.Job, r Replica) *corev1.Pod {
	spec := job.Replicas()[r.Type]
	template := spec.Template.DeepCopy()
	f.Connect(job, r, template)
	if c := job.Policy().Checkpoint; c != nil {
		checkpoint.Mount(job.GetName(), c, &template.Spec)
	}
	p := &corev1.Pod{
		ObjectMeta: metadata(job, v1.ReplicaName(job.GetName(), r.Type, r.Index), template.Labels),
		Spec:       template.Spec,
	}
	p.Annotations = template.Annotations
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	for k, v := range replicaLabels(job, r) {
		p.Labels[k] = v
	}
	if f.Master(job, r) {
		p.Labels[v1.LabelJobRole] = "master"
	}
	p.Spec.RestartPolicy = restartPolicy(job, spec.RestartPolicy)
	return p
}

// restartPolicy is what the kubelet may do by itself. Where exit codes decide,
// or all replicas are restarted together, that is nothing.
func restartPolicy(job v1.Job, policy v1.RestartPolicy) corev1.RestartPolicy {
	if policy == v1.RestartOnExitCode || job.Policy().RestartScope == v1.RestartJob {
		return corev1.RestartPolicyNever
	}
	return corev1.RestartPolicy(policy)
}

// newService makes the Service that gives a replica its name.
func newService(job v1.Job, r Replica) *corev1.Service {
	set := replicaLabels(job, r)
	s := &corev1.Service{
		ObjectMeta: metadata(job, v1.ReplicaName(job.GetName(), r.Type, r.Index), set),
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: set},
	}
	main := job.Traits().Main(&job.Replicas()[r.Type].Template.Spec)
	for _, p := range main.Ports {
		port := corev1.ServicePort{Name: p.Name, Port: p.ContainerPort, Protocol: p.Protocol}
		if port.Name == "" && len(main.Ports) > 1 {
			port.Name = fmt.Sprintf("port-%d", p.ContainerPort)
		}
		s.Spec.Ports = append(s.Spec.Ports, port)
	}
	return s
}
