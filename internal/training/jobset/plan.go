// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/jobset/v1alpha2"
)

// Plan is what to do about a set.
type Plan struct {
	// Delete are Jobs of an earlier attempt, and those that still run when the
	// set has ended.
	Delete []*batchv1.Job
	// Support says that the set's Service and claims must be there.
	Support bool
	// Create are Jobs to be made.
	Create []*batchv1.Job
	// Suspend are Jobs to be suspended, as they are now.
	Suspend []*batchv1.Job
	// Resume are Jobs to be resumed, with their new Pod templates.
	Resume []*batchv1.Job
	// Status is what the set's status should be.
	Status v1alpha2.JobSetStatus
	// Events are to be recorded once the status is written.
	Events []Event
	// Expired means that the set is to be deleted.
	Expired bool
	// After is when to look again, 0 to wait for a change.
	After time.Duration
}

// Event is an event about a set.
type Event struct {
	Warning         bool
	Reason, Message string
}

// messages of conditions, which are JobSet's.
const (
	messageCompleted       = "jobset completed successfully"
	messageFailedJobs      = "jobset failed due to one or more job failures"
	messageMaxRestarts     = "jobset failed due to reaching max number of restarts"
	messageFailJobSet      = "applying FailJobSet failure policy action"
	messageRestart         = "applying RestartJobSet failure policy action"
	messageRestartIgnoring = "applying RestartJobSetAndIgnoreMaxRestarts failure policy action"
	messageSuspended       = "jobset is suspended"
	messageResumed         = "jobset is resumed"
	messageJobsReady       = "all jobs are ready"
	messageFailed          = "jobset failed"
	messageInOrder         = "in order startup policy is in progress"
	messageInOrderDone     = "in order startup policy has completed"
)

// set makes a condition true, or false if it was true before, and records a
// change.
func (p *Plan) set(now time.Time, condition string, is bool, warning bool, reason, message string) {
	have := meta.FindStatusCondition(p.Status.Conditions, condition)
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	switch {
	case have == nil && !is:
		return
	case have != nil && have.Status == status && have.Reason == reason && have.Message == message:
		return
	case have != nil && !is && have.Status == status:
		return // it keeps the reason for which it became false
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
	p.Events = append(p.Events, Event{Warning: warning, Reason: reason, Message: message})
}

// end writes down how the set ended.
func (p *Plan) end(now time.Time, condition, reason, message string) {
	failed := condition == v1alpha2.ConditionFailed
	p.set(now, condition, true, failed, reason, message)
	if failed {
		p.set(now, v1alpha2.ConditionRestarting, false, false, v1alpha2.ReasonRestartingFailed, messageFailed)
	} else {
		p.set(now, v1alpha2.ConditionRestarting, false, false, v1alpha2.ReasonRestartingCompleted, messageCompleted)
	}
	p.Status.TerminalState = condition
}

// ended is the condition by which a set ended, nil while it has not.
func ended(status *v1alpha2.JobSetStatus) *metav1.Condition {
	for _, condition := range []string{v1alpha2.ConditionCompleted, v1alpha2.ConditionFailed} {
		if c := meta.FindStatusCondition(status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// outcome is the condition by which a Job ended, nil while it has not.
func outcome(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
