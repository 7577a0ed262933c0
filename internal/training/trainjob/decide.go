// SPDX-License-Identifier: Apache-2.0

package trainjob

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// holdUntilRead is the finalizer of a JobSet whose result its job has not taken.
const holdUntilRead = "diwan.dev/result-unread"

// messages of conditions, which are Kubeflow Trainer's.
const (
	messageSuspended = "TrainJob is suspended"
	messageResumed   = "TrainJob is resumed"
	messageDeadline  = "TrainJob exceeded its active deadline"
)

// Plan is what to do about a job.
type Plan struct {
	// Status is what the job's status should be.
	Status v1alpha1.TrainJobStatus
	// Make means that the JobSet, and what it needs, is to be created.
	Make bool
	// Suspend means that the JobSet is to be suspended.
	Suspend bool
	// Renew means that the JobSet is suspended, and to be updated to the job's
	// current spec.
	Renew bool
	// Release says that the JobSet may go.
	Release bool
	// Delete means that the JobSet is to be deleted.
	Delete bool
	// After is when to look again, 0 to wait for a change.
	After time.Duration
}

// Decide returns the plan for a job, which has its defaults, with the JobSet
// that it owns, nil if there is none.
func Decide(job *v1alpha1.TrainJob, set *jobset.JobSet, now time.Time) Plan {
	p := Plan{Status: *job.Status.DeepCopy()}
	finished := job.IsFinished()
	if !finished {
		p.suspension(job, now)
		p.result(set)
		finished = ended(&p.Status)
	}
	if set != nil {
		p.Status.JobsStatus = counts(set)
	}
	if !finished {
		finished = p.deadline(job, now)
	}
	leaving := set != nil && !set.DeletionTimestamp.IsZero()
	held := set != nil && slices.Contains(set.Finalizers, holdUntilRead)
	switch {
	case job.IsFinished(): // as it is written, so that the result is safe
		p.Release = held
		c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionFailed)
		p.Delete = set != nil && !leaving && c != nil && c.Reason == v1alpha1.ReasonDeadlineExceeded
	case finished:
	case leaving:
		p.Release = held && setEnded(set) == nil // someone deleted it: it is made again when it is gone
	case set == nil:
		p.Make = true
	case job.IsSuspended() && !set.Spec.IsSuspended():
		p.Suspend = true
	default:
		p.Renew = set.Spec.IsSuspended()
	}
	return p
}

// suspension reports whether the job is suspended, and that it was.
func (p *Plan) suspension(job *v1alpha1.TrainJob, now time.Time) {
	set := func(status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionSuspended, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
		})
	}
	switch {
	case job.IsSuspended():
		set(metav1.ConditionTrue, v1alpha1.ReasonSuspended, messageSuspended)
	case meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionSuspended):
		set(metav1.ConditionFalse, v1alpha1.ReasonResumed, messageResumed)
	}
}

// result takes over how the JobSet ended.
func (p *Plan) result(set *jobset.JobSet) {
	if set == nil {
		return
	}
	c := setEnded(set)
	if c == nil {
		return
	}
	result := *c
	result.Type = v1alpha1.ConditionFailed
	if c.Type == jobset.ConditionCompleted {
		result.Type = v1alpha1.ConditionComplete
	}
	meta.SetStatusCondition(&p.Status.Conditions, result)
}

// setEnded is the condition by which a JobSet ended, nil while it has not.
func setEnded(set *jobset.JobSet) *metav1.Condition {
	for _, condition := range []string{jobset.ConditionFailed, jobset.ConditionCompleted} {
		if c := meta.FindStatusCondition(set.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// deadline fails a job that has run for too long, and reports whether it did.
func (p *Plan) deadline(job *v1alpha1.TrainJob, now time.Time) bool {
	if job.Spec.ActiveDeadlineSeconds == 0 || job.IsSuspended() {
		return false
	}
	since := job.CreationTimestamp.Time
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSuspended); c != nil {
		since = c.LastTransitionTime.Time // when it was resumed
	}
	left := since.Add(time.Duration(job.Spec.ActiveDeadlineSeconds) * time.Second).Sub(now)
	if left > 0 {
		p.After = left
		return false
	}
	p.fail(v1alpha1.ReasonDeadlineExceeded, messageDeadline, now)
	return true
}

func (p *Plan) fail(reason, message string, now time.Time) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
}

func ended(status *v1alpha1.TrainJobStatus) bool {
	return (&v1alpha1.TrainJob{Status: *status}).IsFinished()
}

// counts are those of the JobSet's status.
func counts(set *jobset.JobSet) []v1alpha1.JobStatus {
	var out []v1alpha1.JobStatus
	for _, s := range set.Status.ReplicatedJobsStatus {
		out = append(out, v1alpha1.JobStatus{
			Name: s.Name, Ready: ptr.To(s.Ready), Succeeded: ptr.To(s.Succeeded), Failed: ptr.To(s.Failed),
			Active: ptr.To(s.Active), Suspended: ptr.To(s.Suspended),
		})
	}
	return out
}
