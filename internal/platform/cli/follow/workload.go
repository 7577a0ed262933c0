// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

// jobStatus returns a Job's status.
func jobStatus(job *batchv1.Job) progress.Status {
	s := &job.Status
	status := progress.Status{
		Planned: 1, Parallel: 1,
		Started: TimeOf(s.StartTime), Ended: TimeOf(s.CompletionTime),
		Counts: progress.Counts{Succeeded: int(s.Succeeded), Failed: int(s.Failed), Running: int(s.Active)},
	}
	if n := job.Spec.Completions; n != nil {
		status.Planned = int(*n)
	}
	if n := job.Spec.Parallelism; n != nil {
		status.Parallel = int(*n)
	}
	for _, c := range s.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			status.Condition = progress.ConditionSucceeded
		case batchv1.JobFailed:
			status.Condition, status.Reason, status.Message = progress.ConditionFailed, c.Reason, c.Message
			status.Ended = c.LastTransitionTime.Time
		}
	}
	return status
}

// podStatus returns a Pod's status: how it ended, or why it is waiting.
func podStatus(pod *corev1.Pod) progress.Status {
	s := &pod.Status
	status := progress.Status{Started: TimeOf(s.StartTime), Reason: s.Reason, Message: s.Message}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if waits := c.State.Waiting; waits != nil && waits.Message != "" && status.Message == "" {
			status.Reason, status.Message = waits.Reason, waits.Message
		}
		ended := c.State.Terminated
		if ended == nil {
			continue
		}
		if ended.FinishedAt.After(status.Ended) {
			status.Ended = ended.FinishedAt.Time
		}
		if ended.ExitCode != 0 && status.Message == "" {
			status.Reason, status.Message = ended.Reason, exit(c.Name, ended)
		}
	}
	switch s.Phase {
	case corev1.PodSucceeded:
		status.Condition = progress.ConditionSucceeded
	case corev1.PodFailed:
		status.Condition = progress.ConditionFailed
	case corev1.PodRunning:
		status.Counts.Running = 1
	default:
		status.Counts.Pending = 1
		for _, c := range s.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && status.Message == "" {
				status.Reason, status.Message = c.Reason, brief(c.Message)
			}
		}
	}
	return status
}

// exit describes how a container failed.
func exit(container string, ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("container %s exited with code %d", container, ended.ExitCode)
	if ended.Message != "" {
		text += ": " + ended.Message
	}
	return text
}

// TimeOf is a time that may not be known yet.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// End notes by which condition something ended, if it has.
func End(status *progress.Status, conditions []metav1.Condition, succeeded, failed string) {
	for _, c := range conditions {
		switch {
		case c.Status != metav1.ConditionTrue:
		case c.Type == succeeded:
			status.Condition, status.Ended = progress.ConditionSucceeded, TimeOf(&c.LastTransitionTime)
		case c.Type == failed:
			status.Condition, status.Reason, status.Message, status.Ended = progress.ConditionFailed, c.Reason, c.Message, TimeOf(&c.LastTransitionTime)
		}
	}
}

// slimPod drops from a Pod all but what it is and how far.
func slimPod(pod client.Object) { pod.(*corev1.Pod).Spec = corev1.PodSpec{} }

// podOf is what is known of a Pod of a followed object. unit is the label of what the object counts.
func podOf(pod *corev1.Pod, unit string) progress.Pod {
	p := progress.Pod{Name: pod.Name, Unit: pod.Name}
	if unit != "" {
		p.Unit = pod.Labels[unit]
	}
	status := podStatus(pod)
	switch {
	case status.Counts.Running > 0:
		p.State = progress.Running
	case status.Counts.Pending > 0:
		p.State, p.Why = progress.Pending, status.Message
	case status.Condition == progress.ConditionSucceeded:
		p.State = progress.Succeeded
	default:
		p.State = progress.Failed
	}
	p.Failure = failure(pod)
	return p
}

// failure describes how a container of a Pod, which may have been restarted, last failed; "" if none
// did.
func failure(pod *corev1.Pod) string {
	var last *corev1.ContainerStateTerminated
	var text string
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, ended := range []*corev1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
			if ended == nil || ended.ExitCode == 0 || last != nil && ended.FinishedAt.Before(&last.FinishedAt) {
				continue
			}
			last, text = ended, exit(c.Name, ended)
			if ended.Reason != "" && ended.Reason != "Error" {
				text += " (" + ended.Reason + ")"
			}
		}
	}
	if text == "" && pod.Status.Phase == corev1.PodFailed {
		text = pod.Status.Message // such as that of an evicted Pod
	}
	return text
}
