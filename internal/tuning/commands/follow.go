// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/progress"
	"diwan.dev/diwan/internal/tuning/objective"
	"diwan.dev/diwan/internal/tuning/trialname"
)

// followed are the kinds of tuning that come to an end. An OptimizationJob's trials belong to its
// Experiment, which has its name and a UID that is not known here: those of an earlier one are being
// deleted.
func followed() []follow.Kind {
	return []follow.Kind{
		{
			Name: kubeflow.ExperimentKind, APIVersions: []string{kubeflow.GroupVersion.String()},
			Object: &kubeflow.Experiment{}, List: &kubeflow.ExperimentList{},
			Status: follow.Of(experimentStatus), Unit: progress.Trials,
			PodLabel: kubeflow.LabelExperiment, UnitLabel: kubeflow.LabelTrial,
			Search: search(experimentObjective, func(t *kubeflow.Trial, uid types.UID) bool {
				owner := metav1.GetControllerOf(t)
				return owner == nil || owner.UID == uid
			}),
			Quiet: []string{
				kubeflow.ReasonReconcileError, kubeflow.ReasonMetricsUnavailable, kubeflow.ReasonExperimentFailed,
				kubeflow.ReasonSuggestionFailed, kubeflow.ReasonJobFailed,
			},
			Slim: func(e client.Object) { e.(*kubeflow.Experiment).Spec.TrialTemplate = nil },
		},
		{
			Name: trainer.OptimizationJobKind, APIVersions: []string{trainer.GroupVersion.String()},
			Object: &trainer.OptimizationJob{}, List: &trainer.OptimizationJobList{},
			Status: follow.Of(optimizationJobStatus), Unit: progress.Trials,
			PodLabel: kubeflow.LabelExperiment, UnitLabel: kubeflow.LabelTrial,
			Search: search(optimizationJobObjective, func(t *kubeflow.Trial, _ types.UID) bool { return t.DeletionTimestamp == nil }),
		},
	}
}

// search is how the trials of one kind are followed.
func search[O client.Object](objective func(O) progress.Objective, has func(*kubeflow.Trial, types.UID) bool) *follow.Search {
	return &follow.Search{
		Objective: follow.Of(objective),
		Trial:     &kubeflow.Trial{}, List: &kubeflow.TrialList{},
		Label:  kubeflow.LabelExperiment,
		Has:    func(t client.Object, uid types.UID) bool { return has(t.(*kubeflow.Trial), uid) },
		Read:   follow.Of(trialOf),
		Prefix: trialname.Prefix,
		Slim:   func(t client.Object) { t.(*kubeflow.Trial).Spec.RunSpec = nil },
	}
}

// experimentObjective is what an experiment optimises.
func experimentObjective(e *kubeflow.Experiment) progress.Objective {
	o := e.Spec.Objective
	if o == nil {
		return progress.Objective{}
	}
	return progress.Objective{Metric: o.ObjectiveMetricName, Maximize: o.Type == kubeflow.ObjectiveTypeMaximize}
}

// experimentStatus returns an experiment's status.
func experimentStatus(e *kubeflow.Experiment) progress.Status {
	s := &e.Status
	status := progress.Status{
		Started: follow.TimeOf(s.StartTime), Ended: follow.TimeOf(s.CompletionTime),
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
		case ended && end == progress.ConditionSucceeded && resultless(s):
			status.Condition, status.Reason = progress.ConditionFailed, c.Reason
			status.Message = "Experiment has failed because no trial has succeeded"
		case ended:
			status.Condition, status.Reason, status.Message = end, c.Reason, c.Message
		case c.Type == kubeflow.ConditionSuspended && status.Condition == "":
			status.Reason, status.Message = c.Reason, c.Message
		}
	}
	return status
}

// resultless reports whether trials have ended, but none with a result. Katib calls an experiment Succeeded
// when it has reached maxTrialCount, whatever the outcome.
func resultless(s *kubeflow.ExperimentStatus) bool {
	return s.CurrentOptimalTrial.BestTrialName == "" && s.TrialsSucceeded+s.TrialsEarlyStopped == 0 &&
		s.TrialsFailed+s.TrialMetricsUnavailable+s.TrialsKilled > 0
}

// trialStates are the conditions that end a trial, and what they mean.
var trialStates = map[kubeflow.ConditionType]progress.State{
	kubeflow.ConditionSucceeded:          progress.Succeeded,
	kubeflow.ConditionFailed:             progress.Failed,
	kubeflow.ConditionKilled:             progress.Killed,
	kubeflow.ConditionEarlyStopped:       progress.EarlyStopped,
	kubeflow.ConditionMetricsUnavailable: progress.MetricsUnavailable,
}

// trialOf returns what is shown of a trial.
func trialOf(t *kubeflow.Trial) progress.Trial {
	trial := progress.Trial{
		Name:       t.Name,
		Parameters: parameters(t.Spec.ParameterAssignments),
		Value:      value(t.Status.Observation, t.Spec.Objective),
		Violates:   objective.Of(t).Violation > 0,
		Ended:      follow.TimeOf(t.Status.CompletionTime),
		Container:  t.Spec.PrimaryContainerName,
		Replica:    replica(t.Spec.PrimaryPodLabels),
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

// replica is what the names of the Pods whose metrics count have after the trial's, where labels say so
// that users gave; those of the kinds' own masters are known by their names.
func replica(primary map[string]string) string {
	name := strings.ToLower(primary[v1.LabelReplicaType])
	if index := primary[v1.LabelReplicaIndex]; name != "" && index != "" {
		name += "-" + index
	}
	return name
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
		Started: follow.TimeOf(&job.CreationTimestamp),
		Planned: int(job.Spec.NumTrials), Parallel: int(job.Spec.ParallelTrials), Uncounted: true,
	}
	if job.Status != nil {
		follow.End(&status, job.Status.Conditions, trainer.ConditionComplete, trainer.ConditionFailed)
	}
	return status
}
