// SPDX-License-Identifier: Apache-2.0

package commands

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v2beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/progress"
)

// followed are the kinds of training that come to an end. Those of MPIJob's later version have the
// same fields.
func followed() []follow.Kind {
	failed := []string{jobset.ReasonFailedJobs, jobset.ReasonReachedMaxRestarts, jobset.ReasonFailJobSet}
	kinds := []follow.Kind{{
		Name: trainer.TrainJobKind, APIVersions: []string{trainer.GroupVersion.String()},
		Object: &trainer.TrainJob{}, List: &trainer.TrainJobList{},
		Status: follow.Of(trainJobStatus), Unit: progress.Jobs,
		PodLabel: jobset.LabelJobSetName, UnitLabel: batchv1.JobNameLabel,
		Quiet: failed,
	}, {
		Name: jobset.JobSetKind, APIVersions: []string{jobset.GroupVersion.String()},
		Object: &jobset.JobSet{}, List: &jobset.JobSetList{},
		Status: follow.Of(jobSetStatus), Unit: progress.Jobs,
		PodLabel: jobset.LabelJobSetName, UnitLabel: batchv1.JobNameLabel,
		Quiet: failed,
	}}
	for _, job := range v1.Jobs() {
		t := job.Traits()
		k := follow.Kind{
			Name: t.Kind, APIVersions: []string{v1.GroupVersion.String()},
			Object: job, List: v1.NewList(job),
			Status: follow.Of(trainingStatus), Unit: progress.Pods,
			PodLabel: v1.LabelJobName,
			Quiet:    []string{t.Kind + "Failed"},
		}
		if t.Framework == "mpi" {
			k.APIVersions = append(k.APIVersions, v2beta1.GroupVersion.String())
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// trainingStatus is what a training job says of itself: each replica is a Pod.
func trainingStatus(job v1.Job) progress.Status {
	s := job.State()
	status := progress.Status{Started: follow.TimeOf(s.StartTime), Ended: follow.TimeOf(s.CompletionTime)}
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

// trainJobStatus is what a TrainJob says of itself: it counts Jobs, each of which is all the Pods
// of a replicated job.
func trainJobStatus(job *trainer.TrainJob) progress.Status {
	status := progress.Status{Started: follow.TimeOf(&job.CreationTimestamp)}
	for _, s := range job.Status.JobsStatus {
		status.Counts.Running += int(ptr.Deref(s.Active, 0))
		status.Counts.Succeeded += int(ptr.Deref(s.Succeeded, 0))
		status.Counts.Failed += int(ptr.Deref(s.Failed, 0))
	}
	follow.End(&status, job.Status.Conditions, trainer.ConditionComplete, trainer.ConditionFailed)
	explain(&status, job.Status.Conditions, trainer.ConditionSuspended)
	return status
}

// jobSetStatus is what a JobSet says of itself: it counts Jobs.
func jobSetStatus(set *jobset.JobSet) progress.Status {
	status := progress.Status{Started: follow.TimeOf(&set.CreationTimestamp)}
	for _, job := range set.Spec.ReplicatedJobs {
		status.Planned += int(ptr.Deref(job.Replicas, 1))
	}
	for _, s := range set.Status.ReplicatedJobsStatus {
		status.Counts.Running += int(s.Active)
		status.Counts.Succeeded += int(s.Succeeded)
		status.Counts.Failed += int(s.Failed)
	}
	follow.End(&status, set.Status.Conditions, jobset.ConditionCompleted, jobset.ConditionFailed)
	explain(&status, set.Status.Conditions, jobset.ConditionSuspended)
	return status
}

// explain notes the reason of a condition that is true.
func explain(status *progress.Status, conditions []metav1.Condition, condition string) {
	if c := meta.FindStatusCondition(conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
		status.Reason, status.Message = c.Reason, c.Message
	}
}
