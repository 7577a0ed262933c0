// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// reportAlone reports replicas that restarted after others had succeeded.
// Succeeded replicas do not restart if replicas are restarted one by one: a
// program that trains in lockstep waits for them forever.
func (d *decision) reportAlone() {
	if d.job.Policy().RestartScope == v1.RestartJob || d.status.Retries() == 0 || !d.f.InStep(d.job) {
		return
	}
	ended, first := 0, time.Time{}
	for _, p := range d.pods {
		if t := d.main(p).Terminated; t != nil && p.Status.Phase == corev1.PodSucceeded {
			ended++
			if first.IsZero() || t.FinishedAt.Time.Before(first) {
				first = t.FinishedAt.Time
			}
		}
	}
	if ended == 0 {
		return
	}
	for _, t := range d.job.Traits().Types {
		for _, r := range replicasOf(d.job, t) {
			if p := d.pods[r]; p == nil {
				continue
			} else if s := d.main(p).Running; s != nil && s.StartedAt.After(first) {
				d.tell(true, "RestartedAlone", "Pod %s restarted after %d replica(s) had succeeded, which do not restart: a program that trains in lockstep waits for them forever. Set runPolicy.restartScope to Job and delete the Pod to restart all of them together", p.Name, ended)
			}
		}
	}
}

// main is the state of a Pod's container that trains.
func (d *decision) main(p *corev1.Pod) corev1.ContainerState {
	name := d.job.Traits().Container
	if c := d.job.Traits().Main(&p.Spec); c != nil {
		name = c.Name
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == name {
			return s.State
		}
	}
	return corev1.ContainerState{}
}
