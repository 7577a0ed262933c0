// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

func suspended(job v1.Job) bool { s := job.Policy().Suspend; return s != nil && *s }

// suspend takes a job's Pods away.
func (d *decision) suspend() {
	message := fmt.Sprintf("%s %s is suspended.", d.kind, d.job.GetName())
	for _, p := range d.pods {
		d.leave(p)
	}
	d.leave(d.surplus...)
	d.deleteLeaving()
	d.dropObjects()
	d.deleteServices = present(d.services)
	for _, s := range d.status.ReplicaStatuses {
		s.Active = 0
	}
	clear(d.begun)
	if d.status.Is(v1.JobRunning) {
		d.status.Set(d.now, v1.JobRunning, corev1.ConditionFalse, d.kind+"Suspended", message)
	}
	if !d.status.Is(v1.JobSuspended) {
		d.tell(false, d.kind+"Suspended", "%s", message)
		d.status.Set(d.now, v1.JobSuspended, corev1.ConditionTrue, d.kind+"Suspended", message)
	}
}

// resume restarts the clock of a job that was suspended.
func (d *decision) resume() {
	if !d.status.Is(v1.JobSuspended) {
		return
	}
	message := fmt.Sprintf("%s %s is resumed.", d.kind, d.job.GetName())
	d.status.Set(d.now, v1.JobSuspended, corev1.ConditionFalse, d.kind+"Resumed", message)
	d.status.StartTime = &d.now
	d.tell(false, d.kind+"Resumed", "%s", message)
}

// succeed ends a job that has done its work.
func (d *decision) succeed() {
	message := fmt.Sprintf("%s %s is successfully completed.", d.kind, d.job.GetName())
	if d.status.Condition(v1.JobRunning) == nil {
		// It ended before anyone looked; clients measure from here.
		d.status.Set(d.now, v1.JobRunning, corev1.ConditionTrue, d.kind+"Running", fmt.Sprintf("%s %s is running.", d.kind, d.job.GetName()))
	}
	d.end(v1.JobSucceeded, d.kind+"Succeeded", message)
}

// fail ends a job that cannot succeed any more.
func (d *decision) fail(message string) { d.end(v1.JobFailed, d.kind+"Failed", message) }

func (d *decision) end(t v1.JobConditionType, reason, message string) {
	d.status.CompletionTime = &d.now
	d.status.Set(d.now, t, corev1.ConditionTrue, reason, message)
	d.tell(t == v1.JobFailed, reason, "%s", message)
	d.ended()
}

// ended cleans up after a job, and in the end deletes it.
func (d *decision) ended() {
	policy := d.job.Policy()
	d.dropObjects()
	d.clean(*policy.CleanPodPolicy)
	for _, s := range d.status.ReplicaStatuses {
		switch {
		case d.status.Is(v1.JobSucceeded):
			s.Succeeded += s.Active
			s.Active = 0
		case len(d.delete) > 0:
			s.Active = 0
		}
	}
	if ttl := policy.TTLSecondsAfterFinished; ttl != nil && !suspended(d.job) {
		d.remove = d.look(d.finished().Add(time.Duration(*ttl) * time.Second))
	}
}

// dropObjects deletes objects that are useless without the job's Pods.
func (d *decision) dropObjects() {
	for _, obj := range d.f.Objects(d.job, d.pods) {
		if endsWithJob(obj) {
			d.drop = append(d.drop, obj)
		}
	}
}

// finished is when the job ended.
func (d *decision) finished() time.Time {
	if t := d.status.CompletionTime; t != nil {
		return t.Time
	}
	for _, t := range []v1.JobConditionType{v1.JobFailed, v1.JobSucceeded} {
		if c := d.status.Condition(t); c != nil {
			return c.LastTransitionTime.Time
		}
	}
	return d.now.Time
}

// clean deletes the Pods that the policy says, with their Services.
func (d *decision) clean(policy v1.CleanPodPolicy) {
	goes := map[string]bool{}
	for _, p := range d.all {
		switch {
		case policy == v1.CleanPodsAll, policy == v1.CleanPodsRunning && (p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodPending):
			goes[p.Name] = true
			if p.DeletionTimestamp == nil {
				d.delete = append(d.delete, p)
			}
		}
	}
	for _, s := range present(d.services) {
		if goes[s.Name] || policy == v1.CleanPodsAll {
			d.deleteServices = append(d.deleteServices, s)
		}
	}
}

// present are the Services that are not on their way out.
func present(all []*corev1.Service) []*corev1.Service {
	var out []*corev1.Service
	for _, s := range all {
		if s.DeletionTimestamp == nil {
			out = append(out, s)
		}
	}
	return out
}
