// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// launcher is what there is of the launcher of an MPIJob of v2beta1: a Job of
// batch, nil without one, and its Pods.
type launcher struct {
	job  *batchv1.Job
	pods []*corev1.Pod
}

// launched is the course of an MPIJob of v2beta1. Its workers are replicas as those
// of any job. Its launcher is a Job, which retries, has the deadline, and whose end is
// the end of the MPIJob.
type launched struct {
	*decision
	j    *v1.MPIJob
	have launcher
}

func (d *launched) begin() {
	d.become(v1.JobCreated, corev1.ConditionTrue, "MPIJobCreated", d.subject()+" is created.", false)
}

// subject is the job in messages.
func (d *launched) subject() string { return fmt.Sprintf("MPIJob %s/%s", d.j.Namespace, d.j.Name) }

// become sets a condition, and records a change.
func (d *launched) become(t v1.JobConditionType, status corev1.ConditionStatus, reason, message string, warning bool) {
	had := d.status.Condition(t)
	if had == nil || had.Status != status {
		d.tell(warning, reason, "%s", message)
	}
	d.status.Set(d.now, t, status, reason, message)
}

// suspend takes the workers away, and has the launcher's Job suspended.
func (d *launched) suspend() {
	for _, p := range d.pods {
		d.leave(p)
	}
	d.leave(d.surplus...)
	d.deleteLeaving()
	d.dropObjects()
	d.objects = objects(d.f, d.job, nil)
	d.objects = slices.DeleteFunc(d.objects, endsWithJob)
	clear(d.pods)
	d.count()
	clear(d.begun)
	if d.status.Is(v1.JobRunning) {
		d.status.Set(d.now, v1.JobRunning, corev1.ConditionFalse, "MPIJobSuspended", d.subject()+" is suspended.")
	}
	d.become(v1.JobSuspended, corev1.ConditionTrue, "MPIJobSuspended", "MPIJob suspended", false)
	d.launch()
}

func (d *launched) resume() {
	if d.status.Is(v1.JobSuspended) {
		d.become(v1.JobSuspended, corev1.ConditionFalse, "MPIJobResumed", "MPIJob resumed", false)
		d.status.StartTime = &d.now
	}
}

func (d *launched) run() {
	if d.running() > 0 && int(d.status.ReplicaStatuses[v1.Worker].Active) == d.workers() {
		d.become(v1.JobRunning, corev1.ConditionTrue, "MPIJobRunning", d.subject()+" is running.", false)
	}
}

// count counts the workers, and the launcher by its Job.
func (d *launched) count() {
	d.decision.count()
	if d.status.ReplicaStatuses[v1.Worker] == nil {
		d.status.ReplicaStatuses[v1.Worker] = &v1.ReplicaStatus{}
	}
	delete(d.status.ReplicaStatuses, v1.MPILauncher)
	if d.have.job == nil {
		return
	}
	s := &v1.ReplicaStatus{Failed: d.have.job.Status.Failed}
	switch {
	case jobCondition(d.have.job, batchv1.JobComplete) != nil:
		s.Succeeded = 1
	case jobCondition(d.have.job, batchv1.JobFailed) == nil:
		s.Active = int32(d.running())
	}
	d.status.ReplicaStatuses[v1.MPILauncher] = s
}

// running is the number of the launcher's Pods that run.
func (d *launched) running() int {
	n := 0
	for _, p := range d.have.pods {
		if p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

func (d *launched) workers() int { return len(replicasOf(d.job, v1.Worker)) }

// over ends a job that has succeeded or cannot succeed any more, and reports
// whether it did.
func (d *launched) over() bool {
	if d.have.job != nil && jobCondition(d.have.job, batchv1.JobComplete) != nil {
		at := d.have.job.Status.CompletionTime
		if at == nil {
			at = &d.now
		}
		d.end(v1.JobSucceeded, "MPIJobSucceeded", d.subject()+" successfully completed.", *at)
		return true
	}
	reason, message := d.verdict()
	if reason != "" {
		d.end(v1.JobFailed, reason, message, d.now)
	}
	return reason != ""
}

// verdict says why the job has failed, "" if it has not.
func (d *launched) verdict() (reason, message string) {
	policy := d.job.Policy()
	if d.have.job != nil {
		if c := jobCondition(d.have.job, batchv1.JobFailed); c != nil {
			return d.launcherFailed(c)
		}
	}
	gone, evicted := 0, 0
	for r, p := range d.pods {
		if p.Status.Phase == corev1.PodFailed && !d.retryable(r, p) {
			gone++
			if p.Status.Reason == "Evicted" {
				evicted++
			}
		}
	}
	switch limit := policy.BackoffLimit; {
	case evicted > 0:
		return "MPIJobEvicted", fmt.Sprintf("%d/%d workers are evicted", evicted, d.workers())
	case gone > 0 && d.held() && d.waits():
		return "MPIJobFailed", fmt.Sprintf("%d of %d workers failed before the launcher started", gone, d.workers())
	case limit != nil && d.tries() > *limit:
		return batchv1.JobReasonBackoffLimitExceeded, "workers have failed more often than the specified backoff limit"
	}
	// The Job of a launcher that may run looks at the time.
	if limit := policy.ActiveDeadlineSeconds; limit != nil && d.held() && d.look(d.status.StartTime.Add(time.Duration(*limit)*time.Second)) {
		return batchv1.JobReasonDeadlineExceeded, "MPIJob was active longer than specified deadline"
	}
	return "", ""
}

// maxMessage is the length of the longest message of an event.
const maxMessage = 1024

// launcherFailed is how the launcher's Job failed, and the last of its Pods.
func (d *launched) launcherFailed(c *batchv1.JobCondition) (reason, message string) {
	reason, message = c.Reason, c.Message
	if reason == "" {
		reason = "MPIJobFailed"
	}
	if message == "" {
		message = d.subject() + " has failed"
	}
	var last *corev1.Pod
	for _, p := range d.have.pods {
		if p.Status.Phase == corev1.PodFailed && (last == nil || last.CreationTimestamp.Before(&p.CreationTimestamp)) {
			last = p
		}
	}
	if reason == batchv1.JobReasonBackoffLimitExceeded && last != nil {
		reason += "/" + last.Status.Reason
		message += ": " + last.Status.Message
	}
	if len(message) > maxMessage {
		message = message[:maxMessage-3] + "..."
	}
	return reason, message
}

// end ends the job. That it ran and nobody saw it is said before its end, which
// stays the last condition.
func (d *launched) end(t v1.JobConditionType, reason, message string, at metav1.Time) {
	d.status.CompletionTime = &at
	if d.status.Condition(v1.JobRunning) == nil {
		d.status.Set(at, v1.JobRunning, corev1.ConditionFalse, "MPIJobRunning", d.subject()+" is finished but Running condition was never set.")
	}
	d.become(t, corev1.ConditionTrue, reason, message, t == v1.JobFailed)
	d.ended()
}

// ended takes away the workers that the policy says, and what is left of the
// launcher of a job that failed in another way.
func (d *launched) ended() {
	d.dropObjects()
	if policy := *d.job.Policy().CleanPodPolicy; policy != v1.CleanPodsNone {
		d.clean(policy)
		if s := d.status.ReplicaStatuses[v1.Worker]; s != nil {
			*s = v1.ReplicaStatus{}
		}
	}
	d.launch()
}

// jobCondition returns a condition of a Job that is True, or nil.
func jobCondition(job *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}
