// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/objective"
)

// keepNames bounds each list of trial names in the status to the newest ones.
// The counts beside them count all. Katib's lists are unbounded, and with tens
// of thousands of trials the object no longer fits into etcd.
const keepNames = 200

// summarize writes a summary of the trials into a status.
func summarize(status *v1beta1.ExperimentStatus, t *tally, names [states][]string) {
	status.Trials = int32(t.total())
	for _, of := range []struct {
		state state
		count *int32
		names *[]string
	}{
		{pending, &status.TrialsPending, &status.PendingTrialList},
		{running, &status.TrialsRunning, &status.RunningTrialList},
		{succeeded, &status.TrialsSucceeded, &status.SucceededTrialList},
		{failed, &status.TrialsFailed, &status.FailedTrialList},
		{killed, &status.TrialsKilled, &status.KilledTrialList},
		{earlyStopped, &status.TrialsEarlyStopped, &status.EarlyStoppedTrialList},
		{metricsUnavailable, &status.TrialMetricsUnavailable, &status.MetricsUnavailableTrialList},
	} {
		*of.count, *of.names = int32(t.counts[of.state]), names[of.state]
	}
	if t.best == nil {
		return // the best stays known when its trial is deleted, as in Katib
	}
	status.CurrentOptimalTrial = optimal(t.best)
}

func optimal(t *v1beta1.Trial) v1beta1.OptimalTrial {
	return v1beta1.OptimalTrial{
		BestTrialName:        t.Name,
		ParameterAssignments: t.Spec.ParameterAssignments,
		Observation:          *t.Status.Observation,
	}
}

// keepOptimal bounds the trials that no other is better than.
const keepOptimal = 50

// contenders returns the trials of the group that may be optimal where there
// are several objectives.
func (g *group) contenders() []*v1beta1.Trial {
	var ended []*v1beta1.Trial
	for i := range g.rows {
		if g.rows[i].score.Kind == objective.Number {
			ended = append(ended, g.rows[i].trial)
		}
	}
	return ended
}

// front returns the Pareto-optimal ones of some trials.
func front(o *v1beta1.ObjectiveSpec, trials []*v1beta1.Trial) []v1beta1.OptimalTrial {
	best := objective.Front(o, trials)
	list := make([]v1beta1.OptimalTrial, min(len(best), keepOptimal))
	for i := range list {
		list[i] = optimal(best[i])
	}
	return list
}

// enter changes the conditions and times of a status by a verdict.
func enter(status *v1beta1.ExperimentStatus, v *verdict, now metav1.Time) {
	if status.StartTime == nil {
		status.StartTime = &now
	}
	conditions := &status.Conditions
	if !conditions.IsTrue(v1beta1.ConditionCreated) {
		conditions.Set(now, v1beta1.ConditionCreated, corev1.ConditionTrue, v1beta1.ReasonExperimentCreated, "Experiment is created")
	}
	if v == nil {
		return
	}
	if v.condition == v1beta1.ConditionSuspended {
		if running := conditions.Get(v1beta1.ConditionRunning); running != nil {
			conditions.Set(now, v1beta1.ConditionRunning, corev1.ConditionFalse, running.Reason, running.Message)
		}
		conditions.Set(now, v.condition, corev1.ConditionTrue, v.reason, v.message)
		return
	}
	leave(status, now)
	switch v.condition {
	case v1beta1.ConditionSucceeded, v1beta1.ConditionFailed:
		conditions.Complete(now, v.condition, v.reason, v.message)
		status.CompletionTime = &now
	default:
		conditions.Set(now, v.condition, corev1.ConditionTrue, v.reason, v.message)
	}
}

// leave ends the time in which an experiment was suspended or had ended, which
// does not count as its own.
func leave(status *v1beta1.ExperimentStatus, now metav1.Time) {
	var since *metav1.Time
	if c := status.Conditions.Get(v1beta1.ConditionSuspended); c != nil {
		since = &c.LastTransitionTime
	}
	if status.CompletionTime != nil {
		since = status.CompletionTime
	}
	if since != nil {
		status.SuspendedSeconds += max(0, int64(now.Sub(since.Time).Round(time.Second)/time.Second))
	}
	status.CompletionTime = nil
	for _, c := range []v1beta1.ConditionType{v1beta1.ConditionSuspended, v1beta1.ConditionSucceeded, v1beta1.ConditionFailed} {
		status.Conditions.Remove(c)
	}
}
