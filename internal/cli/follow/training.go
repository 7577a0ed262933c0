// SPDX-License-Identifier: Apache-2.0

package follow

import (
	corev1 "k8s.io/api/core/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/cli/progress"
)

// trainingJob returns an empty training job of a kind, nil if it is none.
func trainingJob(kind string) v1.Job {
	for _, job := range v1.Jobs() {
		if job.Traits().Kind == kind {
			return job
		}
	}
	return nil
}

// trainingStatus is what a training job says of itself: each replica is a Pod.
func trainingStatus(job v1.Job) progress.Status {
	s := job.State()
	status := progress.Status{Started: timeOf(s.StartTime), Ended: timeOf(s.CompletionTime)}
	for _, spec := range job.Replicas() {
		switch {
		case spec == nil:
		case spec.Replicas == nil:
			status.Planned++
		default:
			status.Planned += int(*spec.Replicas)
		}
	}
	status.Parallel = status.Planned
	for _, r := range s.ReplicaStatuses {
		if r != nil {
			status.Counts.Running += int(r.Active)
			status.Counts.Succeeded += int(r.Succeeded)
			status.Counts.Failed += int(r.Failed)
		}
	}
	for _, c := range s.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == v1.JobSucceeded:
			status.Condition = progress.ConditionSucceeded
		case c.Type == v1.JobFailed:
			status.Condition, status.Reason, status.Message = progress.ConditionFailed, c.Reason, c.Message
		case c.Type == v1.JobRestarting, c.Type == v1.JobSuspended:
			status.Reason, status.Message = c.Reason, c.Message
		}
	}
	return status
}
