// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// reportAlone tells of replicas that began again when others had succeeded. These
// do not begin again where replicas are restarted one by one: a program that
// trains in step waits for them for ever.
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
				d.tell(true, "BeganAlone", "Pod %s began again when %d replica(s) had succeeded, which do not begin again: a program that trains in step waits for them for ever. Set runPolicy.restartScope to Job and delete the Pod, and all begin again together", p.Name, ended)
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
