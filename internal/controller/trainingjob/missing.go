// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// lookForMissing finds the replicas whose Pods are gone, though nobody saw their
// end: deleted by force, with their machine, or while no operator was there.
// What was counted in the status before says who had begun.
//
// A Pod that succeeded and was deleted is made again, but has not failed.
func (d *decision) lookForMissing(before map[v1.ReplicaType]*v1.ReplicaStatus) {
	present := map[Replica]bool{}
	for _, p := range d.leaving {
		r, _ := d.replicaOf(&p.ObjectMeta)
		present[r] = true
	}
	for r, p := range d.pods {
		present[r] = true
		if begun(p) {
			d.arrive(r)
		}
	}
	for t, s := range d.status.ReplicaStatuses {
		var gone []Replica
		for i := range int(s.Begun) {
			if r := (Replica{t, i}); !present[r] && !d.awaits(r) {
				gone = append(gone, r)
			}
		}
		if len(gone) == 0 {
			d.begin(t, s)
			continue
		}
		d.lost = true
		done := min(len(gone), int(max(0, before[t].Succeeded-s.Succeeded)))
		for _, r := range gone[:done] {
			d.await(r)
		}
		d.missing = append(d.missing, gone[done:]...)
	}
}

// begin notes that all replicas of a type have begun, once they have.
func (d *decision) begin(t v1.ReplicaType, s *v1.ReplicaStatus) {
	n := int(*d.job.Replicas()[t].Replicas)
	for i := range n {
		if p := d.pods[Replica{t, i}]; p == nil || !begun(p) {
			return
		}
	}
	s.Begun = int32(n)
}

// beginAnew forgets who has begun: all replicas are replaced.
func (d *decision) beginAnew() {
	for _, s := range d.status.ReplicaStatuses {
		s.Begun = 0
	}
	clear(d.awaited)
}

func begun(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodPending }

// await notes that a replica is being replaced, until its next Pod has begun.
func (d *decision) await(r Replica) { d.awaited[d.name(r)] = true }

func (d *decision) awaits(r Replica) bool { return d.awaited[d.name(r)] }

func (d *decision) arrive(r Replica) { delete(d.awaited, d.name(r)) }

// name is the name of a replica's Pod and Service.
func (d *decision) name(r Replica) string { return v1.ReplicaName(d.job.GetName(), r.Type, r.Index) }
