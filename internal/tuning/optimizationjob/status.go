// SPDX-License-Identifier: Apache-2.0

package optimizationjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// The types and reasons of a job's conditions.
const (
	conditionCreated  = "Created"
	conditionComplete = "Complete"
	conditionFailed   = "Failed"

	reasonCreated          = "OptimizationJobCreated"
	reasonCreationFailed   = "TrainJobsCreationFailed"
	reasonMaxTrialsReached = "MaxTrialsReached"
	reasonNoResult         = "NoTrialSucceeded"
)

// statusOf is the status of a job with its Experiment, nil before there is one.
func statusOf(job *v1alpha1.OptimizationJob, e *v1beta1.Experiment, now time.Time) *v1alpha1.OptimizationJobStatus {
	status := &v1alpha1.OptimizationJobStatus{}
	if job.Status != nil {
		status = job.Status.DeepCopy()
	}
	if e == nil {
		return status
	}
	set(status, now, conditionCreated, true, reasonCreated, "The search has started")
	for _, c := range e.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == v1beta1.ConditionSucceeded && resultOf(e) == nil:
			set(status, now, conditionFailed, true, reasonNoResult, fmt.Sprintf("None of the %d trials succeeded and reported %s: see its Trials and TrainJobs",
				e.Status.Trials, e.Spec.Objective.ObjectiveMetricName))
		case c.Type == v1beta1.ConditionSucceeded:
			reason := c.Reason
			if reason == v1beta1.ReasonExperimentMaxTrialsReached {
				reason = reasonMaxTrialsReached
			}
			set(status, now, conditionComplete, true, reason, c.Message)
		case c.Type == v1beta1.ConditionFailed:
			set(status, now, conditionFailed, true, c.Reason, c.Message)
		}
	}
	status.Result = resultOf(e)
	return status
}

// resultOf is the best trial so far, nil while there is none.
func resultOf(e *v1beta1.Experiment) *v1alpha1.Result {
	best := e.Status.CurrentOptimalTrial
	if best.BestTrialName == "" {
		return nil
	}
	result := &v1alpha1.Result{TrainJobName: best.BestTrialName}
	for _, a := range best.ParameterAssignments {
		result.Parameters = append(result.Parameters, v1alpha1.ParameterAssignment{Name: a.Name, Value: a.Value})
	}
	return result
}

func set(status *v1alpha1.OptimizationJobStatus, now time.Time, condition string, is bool, reason, message string) {
	value := metav1.ConditionFalse
	if is {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: condition, Status: value, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
}

// finished reports whether a job is complete or has failed.
func finished(status *v1alpha1.OptimizationJobStatus) bool {
	return status != nil && (meta.IsStatusConditionTrue(status.Conditions, conditionComplete) || meta.IsStatusConditionTrue(status.Conditions, conditionFailed))
}
