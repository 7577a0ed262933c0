// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/cli/progress"
)

// jobStatus is what a Job says of itself.
func jobStatus(job *batchv1.Job) progress.Status {
	s := &job.Status
	status := progress.Status{
		Planned: 1, Parallel: 1,
		Started: timeOf(s.StartTime), Ended: timeOf(s.CompletionTime),
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

// podStatus is what a Pod says of itself.
func podStatus(pod *corev1.Pod) progress.Status {
	s := &pod.Status
	status := progress.Status{Started: timeOf(s.StartTime), Reason: s.Reason, Message: s.Message}
	for _, c := range append(s.InitContainerStatuses[:len(s.InitContainerStatuses):len(s.InitContainerStatuses)], s.ContainerStatuses...) {
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
			status.Reason = ended.Reason
			status.Message = fmt.Sprintf("container %s ended with exit code %d", c.Name, ended.ExitCode)
			if ended.Message != "" {
				status.Message += ": " + ended.Message
			}
		}
	}
	switch s.Phase {
	case corev1.PodSucceeded:
		status.Condition = progress.ConditionSucceeded
	case corev1.PodFailed:
		status.Condition = progress.ConditionFailed
	}
	return status
}
