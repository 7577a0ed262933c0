// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/cli/progress"
	"diwan.dev/diwan/internal/controller/objective"
)

// Objective is what an experiment optimises.
func Objective(e *kubeflow.Experiment) progress.Objective {
	o := e.Spec.Objective
	if o == nil {
		return progress.Objective{}
	}
	return progress.Objective{Metric: o.ObjectiveMetricName, Maximize: o.Type == kubeflow.ObjectiveTypeMaximize}
}

// experimentStatus is what an experiment says of itself.
func experimentStatus(e *kubeflow.Experiment) progress.Status {
	s := &e.Status
	status := progress.Status{
		Started: timeOf(s.StartTime), Ended: timeOf(s.CompletionTime),
		Counts: progress.Counts{
			Succeeded: int(s.TrialsSucceeded), Failed: int(s.TrialsFailed), Killed: int(s.TrialsKilled),
			MetricsUnavailable: int(s.TrialMetricsUnavailable), EarlyStopped: int(s.TrialsEarlyStopped),
			Running: int(s.TrialsRunning), Pending: int(s.TrialsPending),
		},
	}
	if n := e.Spec.MaxTrialCount; n != nil {
		status.Planned = int(*n)
	}
	if n := e.Spec.ParallelTrialCount; n != nil {
		status.Parallel = int(*n)
	}
	if best := s.CurrentOptimalTrial; best.BestTrialName != "" {
		status.Best = &progress.Trial{
			Name: best.BestTrialName, State: progress.Succeeded,
			Parameters: parameters(best.ParameterAssignments),
			Value:      value(&best.Observation, e.Spec.Objective),
		}
	}
	ends := map[kubeflow.ConditionType]progress.Condition{
		kubeflow.ConditionSucceeded: progress.ConditionSucceeded,
		kubeflow.ConditionFailed:    progress.ConditionFailed,
	}
	for _, c := range s.Conditions {
		end, ended := ends[c.Type]
		switch {
		case c.Status != corev1.ConditionTrue:
		case ended:
			status.Condition, status.Reason, status.Message = end, c.Reason, c.Message
		case c.Type == kubeflow.ConditionSuspended && status.Condition == "":
			status.Reason, status.Message = c.Reason, c.Message
		}
	}
	return status
}

// trialStates are the conditions that end a trial, and what they mean.
var trialStates = map[kubeflow.ConditionType]progress.State{
	kubeflow.ConditionSucceeded:          progress.Succeeded,
	kubeflow.ConditionFailed:             progress.Failed,
	kubeflow.ConditionKilled:             progress.Killed,
	kubeflow.ConditionEarlyStopped:       progress.EarlyStopped,
	kubeflow.ConditionMetricsUnavailable: progress.MetricsUnavailable,
}

// trialOf is what is shown of a trial.
func trialOf(t *kubeflow.Trial) progress.Trial {
	trial := progress.Trial{
		Name:       t.Name,
		Parameters: parameters(t.Spec.ParameterAssignments),
		Value:      value(t.Status.Observation, t.Spec.Objective),
		Violates:   objective.Of(t).Violation > 0,
		Ended:      timeOf(t.Status.CompletionTime),
	}
	if t.Status.Conditions.IsTrue(kubeflow.ConditionRunning) {
		trial.State = progress.Running
	}
	for _, c := range t.Status.Conditions {
		if state, ok := trialStates[c.Type]; ok && c.Status == corev1.ConditionTrue {
			trial.State, trial.Message = state, c.Message
		}
	}
	return trial
}

// value is the objective's value in an observation by its strategy; "" without one.
func value(observation *kubeflow.Observation, objective *kubeflow.ObjectiveSpec) string {
	if objective == nil {
		return ""
	}
	metric := observation.Get(objective.ObjectiveMetricName)
	if metric == nil {
		return ""
	}
	chosen := metric.Value(objective.Strategy(metric.Name, objective.Type))
	if chosen == kubeflow.UnavailableMetricValue {
		return ""
	}
	return chosen
}

func parameters(assignments []kubeflow.ParameterAssignment) []progress.Parameter {
	parameters := make([]progress.Parameter, len(assignments))
	for i, a := range assignments {
		parameters[i] = progress.Parameter{Name: a.Name, Value: a.Value}
	}
	return parameters
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
