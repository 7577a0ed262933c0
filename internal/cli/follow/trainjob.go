// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/cli/progress"
)

// trainJobStatus is what a TrainJob says of itself: it counts Jobs, each of which is all the Pods
// of a replicated job.
func trainJobStatus(job *trainer.TrainJob) progress.Status {
	status := progress.Status{Started: timeOf(&job.CreationTimestamp)}
	for _, s := range job.Status.JobsStatus {
		status.Counts.Running += int(ptr.Deref(s.Active, 0))
		status.Counts.Succeeded += int(ptr.Deref(s.Succeeded, 0))
		status.Counts.Failed += int(ptr.Deref(s.Failed, 0))
	}
	ended(&status, job.Status.Conditions)
	if c := meta.FindStatusCondition(job.Status.Conditions, trainer.ConditionSuspended); c != nil && c.Status == metav1.ConditionTrue {
		status.Reason, status.Message = c.Reason, c.Message
	}
	return status
}

// optimizationJobObjective is what an OptimizationJob optimises.
func optimizationJobObjective(job *trainer.OptimizationJob) progress.Objective {
	if len(job.Spec.Objectives) == 0 {
		return progress.Objective{}
	}
	first := job.Spec.Objectives[0]
	return progress.Objective{Metric: first.Metric, Maximize: first.Direction == trainer.Maximize}
}

// optimizationJobStatus is what an OptimizationJob says of itself.
func optimizationJobStatus(job *trainer.OptimizationJob) progress.Status {
	status := progress.Status{
		Started: timeOf(&job.CreationTimestamp),
		Planned: int(job.Spec.NumTrials), Parallel: int(job.Spec.ParallelTrials),
	}
	if job.Status != nil {
		ended(&status, job.Status.Conditions)
	}
	return status
}

// ended notes by which condition something ended, if it has.
func ended(status *progress.Status, conditions []metav1.Condition) {
	for _, c := range conditions {
		switch {
		case c.Status != metav1.ConditionTrue:
		case c.Type == trainer.ConditionComplete:
			status.Condition, status.Ended = progress.ConditionSucceeded, timeOf(&c.LastTransitionTime)
		case c.Type == trainer.ConditionFailed:
			status.Condition, status.Reason, status.Message, status.Ended = progress.ConditionFailed, c.Reason, c.Message, timeOf(&c.LastTransitionTime)
		}
	}
}
