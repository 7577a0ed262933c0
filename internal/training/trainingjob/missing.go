// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// lookForMissing finds the replicas that had begun, as the status says, and whose
// Pods are gone, though nobody saw their end: deleted by force, with their machine,
// or while no operator was there.
//
// Pods that had not begun, or had succeeded, are made again and have not failed.
func (d *decision) lookForMissing() {
	seen := map[Replica]bool{}
	for _, p := range d.leaving {
		r, _ := d.replicaOf(&p.ObjectMeta)
		seen[r] = true
	}
	for r := range d.begun {
		if !seen[r] && d.pods[r] == nil {
			d.missing = append(d.missing, r)
			delete(d.begun, r)
		}
	}
	for r, p := range d.pods {
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			delete(d.begun, r)
		case begun(p):
			d.begun[r] = true
		}
	}
	d.lost = d.lost || len(d.missing) > 0
}

func begun(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodPending }

// begunReplicas are the replicas of a job that its status says have begun.
func begunReplicas(job v1.Job) map[Replica]bool {
	all := map[Replica]bool{}
	for t, s := range job.State().ReplicaStatuses {
		spec := job.Replicas()[t]
		if spec == nil || s == nil {
			continue
		}
		for _, i := range parseIndices(s.BegunIndexes, int(*spec.Replicas)) {
			all[Replica{t, i}] = true
		}
	}
	return all
}

// noteBegun writes to the status which replicas have begun.
func (d *decision) noteBegun() {
	indices := map[v1.ReplicaType][]int{}
	for r := range d.begun {
		indices[r.Type] = append(indices[r.Type], r.Index)
	}
	for t, s := range d.status.ReplicaStatuses {
		slices.Sort(indices[t])
		s.BegunIndexes = formatIndices(indices[t])
	}
}

// countContainers counts container restarts in existing Pods. They stay counted
// when the Pod is gone, or no longer reports them, such as an evicted one.
func (d *decision) countContainers() {
	before, now := d.status.ContainerRestarts, map[string]int32{}
	there := map[string]bool{}
	for _, p := range slices.AppendSeq(slices.Clone(d.surplus), maps.Values(d.pods)) {
		there[p.Name] = true
		if n := max(d.inPlace(p), before[p.Name]); n > 0 {
			now[p.Name] = n
		}
	}
	for name, n := range before {
		if !there[name] {
			d.status.Restarts += n
			d.lost = true
		}
	}
	d.status.ContainerRestarts = now
	if len(now) == 0 {
		d.status.ContainerRestarts = nil
	}
}

// settle moves the restarts of a Pod's containers to the count of Pods that no
// longer exist.
func (d *decision) settle(pod string) {
	d.status.Restarts += d.status.ContainerRestarts[pod]
	delete(d.status.ContainerRestarts, pod)
	if len(d.status.ContainerRestarts) == 0 {
		d.status.ContainerRestarts = nil
	}
}

// inPlace is how often the kubelet restarted a Pod's containers for its job.
func (d *decision) inPlace(p *corev1.Pod) int32 {
	r, _ := d.replicaOf(&p.ObjectMeta)
	if spec := d.job.Replicas()[r.Type]; spec == nil || spec.RestartPolicy == v1.RestartNever {
		return 0
	}
	var n int32
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		n += s.RestartCount
	}
	return n
}

// name is the name of a replica's Pod and Service.
func (d *decision) name(r Replica) string { return v1.ReplicaName(d.job.GetName(), r.Type, r.Index) }
