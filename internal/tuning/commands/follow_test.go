// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/progress"
	"diwan.dev/diwan/internal/tuning/trialname"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

// kindOf is how a kind of tuning is followed.
func kindOf(name string) *follow.Kind { return follow.Kinds(followed()).Named(name) }

func conditions(types ...kubeflow.ConditionType) kubeflow.Conditions {
	var cs kubeflow.Conditions
	for _, t := range types {
		for i := range cs {
			cs[i].Status = corev1.ConditionFalse
		}
		cs = append(cs, kubeflow.Condition{Type: t, Status: corev1.ConditionTrue, Reason: "Why" + string(t), Message: "because"})
	}
	return cs
}

func TestTrialOf(t *testing.T) {
	t.Parallel()
	observed := &kubeflow.Observation{Metrics: []kubeflow.Metric{{Name: "loss", Min: "0.1", Max: "0.9", Latest: "0.5"}}}
	cases := map[string]struct {
		reason    string
		objective kubeflow.ObjectiveSpec
		status    kubeflow.TrialStatus
		state     progress.State
		value     string
	}{
		"New":         {reason: "A trial without conditions waits", state: progress.Pending},
		"Running":     {reason: "Running is a condition of its own", status: kubeflow.TrialStatus{Conditions: conditions("Created", "Running")}, state: progress.Running},
		"Minimize":    {reason: "Without a strategy the least counts", objective: kubeflow.ObjectiveSpec{Type: "minimize"}, status: kubeflow.TrialStatus{Conditions: conditions("Running", "Succeeded"), Observation: observed}, state: progress.Succeeded, value: "0.1"},
		"Maximize":    {reason: "Without a strategy the greatest counts", objective: kubeflow.ObjectiveSpec{Type: "maximize"}, status: kubeflow.TrialStatus{Conditions: conditions("Running", "Succeeded"), Observation: observed}, state: progress.Succeeded, value: "0.9"},
		"Strategy":    {reason: "A strategy is heeded", objective: kubeflow.ObjectiveSpec{Type: "maximize", MetricStrategies: []kubeflow.MetricStrategy{{Name: "loss", Value: kubeflow.ExtractByLatest}}}, status: kubeflow.TrialStatus{Conditions: conditions("EarlyStopped"), Observation: observed}, state: progress.EarlyStopped, value: "0.5"},
		"Text":        {reason: "A text has neither least nor greatest", status: kubeflow.TrialStatus{Conditions: conditions("Succeeded"), Observation: &kubeflow.Observation{Metrics: []kubeflow.Metric{{Name: "loss", Min: "unavailable", Max: "unavailable", Latest: "Genotype(1)"}}}}, state: progress.Succeeded, value: "Genotype(1)"},
		"Unavailable": {reason: "No metric is no value", status: kubeflow.TrialStatus{Conditions: conditions("Running", "MetricsUnavailable"), Observation: &kubeflow.Observation{Metrics: []kubeflow.Metric{{Name: "loss", Min: "unavailable", Max: "unavailable", Latest: "unavailable"}}}}, state: progress.MetricsUnavailable},
		"Failed":      {reason: "A failure is told with its message", status: kubeflow.TrialStatus{Conditions: conditions("Running", "Failed")}, state: progress.Failed},
		"Killed":      {reason: "A killed trial has ended", status: kubeflow.TrialStatus{Conditions: conditions("Killed")}, state: progress.Killed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.objective.ObjectiveMetricName = "loss"
			got := trialOf(&kubeflow.Trial{
				ObjectMeta: metav1.ObjectMeta{Name: "x"},
				Spec:       kubeflow.TrialSpec{Objective: &tc.objective, ParameterAssignments: []kubeflow.ParameterAssignment{{Name: "lr", Value: "1"}}},
				Status:     tc.status,
			})
			want := progress.Trial{Name: "x", State: tc.state, Value: tc.value, Parameters: []progress.Parameter{{Name: "lr", Value: "1"}}}
			if tc.state.Ended() {
				want.Message = "because"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestExperimentStatus(t *testing.T) {
	t.Parallel()
	e := &kubeflow.Experiment{
		Spec: kubeflow.ExperimentSpec{
			Objective:     &kubeflow.ObjectiveSpec{Type: "maximize", ObjectiveMetricName: "m"},
			MaxTrialCount: ptr.To[int32](9), ParallelTrialCount: ptr.To[int32](2),
		},
		Status: kubeflow.ExperimentStatus{
			StartTime: &noon, Conditions: conditions("Created", "Running", "Succeeded"),
			TrialsSucceeded: 3, TrialMetricsUnavailable: 1, TrialsRunning: 2,
			CurrentOptimalTrial: kubeflow.OptimalTrial{
				BestTrialName: "b", Observation: kubeflow.Observation{Metrics: []kubeflow.Metric{{Name: "m", Min: "1", Max: "2", Latest: "1"}}},
			},
		},
	}
	want := progress.Status{
		Condition: progress.ConditionSucceeded, Reason: "WhySucceeded", Message: "because",
		Started: noon.Time, Planned: 9, Parallel: 2,
		Counts: progress.Counts{Succeeded: 3, MetricsUnavailable: 1, Running: 2},
		Best:   &progress.Trial{Name: "b", State: progress.Succeeded, Value: "2", Parameters: []progress.Parameter{}},
	}
	if diff := cmp.Diff(want, experimentStatus(e)); diff != "" {
		t.Errorf("status (-want +got)\n%s", diff)
	}
	e.Status.Conditions = conditions("Created", "Suspended")
	want.Condition, want.Reason = "", "WhySuspended"
	if diff := cmp.Diff(want, experimentStatus(e)); diff != "" {
		t.Errorf("status while it is suspended (-want +got)\n%s", diff)
	}
	if got := experimentObjective(e); got != (progress.Objective{Metric: "m", Maximize: true}) {
		t.Errorf("objective is %+v", got)
	}
	if got := experimentObjective(&kubeflow.Experiment{}); got != (progress.Objective{}) {
		t.Errorf("no objective is %+v", got)
	}
}

func TestOptimizationJob(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(noon.Add(-time.Minute))
	search := &trainer.OptimizationJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: since}}
	search.Spec.NumTrials, search.Spec.ParallelTrials = 4, 2
	search.Spec.Objectives = []trainer.Objective{{Metric: "accuracy", Direction: trainer.Maximize}}
	if got := optimizationJobObjective(search); got != (progress.Objective{Metric: "accuracy", Maximize: true}) {
		t.Errorf("a search optimises %+v", got)
	}
	search.Status = &trainer.OptimizationJobStatus{Conditions: []metav1.Condition{{Type: "Complete", Status: "True", LastTransitionTime: noon}}}
	want := progress.Status{Started: since.Time, Planned: 4, Parallel: 2, Uncounted: true, Condition: progress.ConditionSucceeded, Ended: noon.Time}
	if diff := cmp.Diff(want, optimizationJobStatus(search)); diff != "" {
		t.Errorf("a search that ended (-want +got):\n%s", diff)
	}
}

// TestTrialsOfASearch holds whose trials an OptimizationJob shows.
func TestTrialsOfASearch(t *testing.T) {
	t.Parallel()
	search := kindOf(trainer.OptimizationJobKind).Search
	w := progress.NewWork(progress.ID{Kind: trainer.OptimizationJobKind, Namespace: "n", Name: "x"}, progress.Trials, progress.Objective{Metric: "accuracy", Maximize: true}, true, noon.Time)
	trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: "x-1", OwnerReferences: []metav1.OwnerReference{{UID: "experiment", Controller: ptr.To(true)}}}}
	trial.Status.Conditions.Set(noon, kubeflow.ConditionFailed, corev1.ConditionTrue, "r", "m")
	earlier := trial.DeepCopy()
	earlier.Name, earlier.DeletionTimestamp = "x-0", &noon
	for _, t := range []*kubeflow.Trial{trial, earlier} {
		if search.Has(t, "search") {
			w.SetTrial(search.Read(t), false, noon.Time)
		}
	}
	if r := progress.NewReport(w.View(noon.Time)); r.Trials == nil || r.Trials.Total != 1 || r.Trials.Failed != 1 || r.Pods != nil {
		t.Errorf("its report is %+v, want one trial, which failed", r)
	}
}

// TestExperimentWithoutResult fails an experiment that has spent its trials in vain.
func TestExperimentWithoutResult(t *testing.T) {
	t.Parallel()
	e := &kubeflow.Experiment{Status: kubeflow.ExperimentStatus{Conditions: conditions("Succeeded"), TrialsFailed: 1, TrialMetricsUnavailable: 1}}
	if got := experimentStatus(e); got.Condition != progress.ConditionFailed || got.Message != "Experiment has failed because no trial has succeeded" {
		t.Errorf("its status is %+v", got)
	}
	e.Status.TrialsSucceeded = 1
	if got := experimentStatus(e); got.Condition != progress.ConditionSucceeded {
		t.Errorf("with a trial that succeeded, its status is %+v", got)
	}
}

// TestEarlierTrials holds trials of a deleted experiment apart from those of one of its name.
func TestEarlierTrials(t *testing.T) {
	t.Parallel()
	for uid, want := range map[types.UID]bool{"new": true, "old": false} {
		trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}}}
		if got := kindOf(kubeflow.ExperimentKind).Search.Has(trial, "new"); got != want {
			t.Errorf("a trial of the %s experiment is followed: %v, want %v", uid, got, want)
		}
	}
}

// TestTrialViolates tells a trial that violates a constraint from one that does not.
func TestTrialViolates(t *testing.T) {
	t.Parallel()
	most := 3.0
	for latest, want := range map[string]bool{"3": false, "4": true} {
		got := trialOf(&kubeflow.Trial{
			Spec: kubeflow.TrialSpec{Objective: &kubeflow.ObjectiveSpec{
				Type: "minimize", ObjectiveMetricName: "loss", Constraints: []kubeflow.MetricConstraint{{MetricName: "memory", Max: &most}},
			}},
			Status: kubeflow.TrialStatus{Conditions: conditions("Succeeded"), Observation: &kubeflow.Observation{Metrics: []kubeflow.Metric{
				{Name: "loss", Min: "1", Max: "1", Latest: "1"}, {Name: "memory", Min: latest, Max: latest, Latest: latest},
			}}},
		})
		if got.Violates != want {
			t.Errorf("with memory %s of %v, Violates is %v", latest, most, got.Violates)
		}
	}
}

// TestMade knows what experiments with long names made.
func TestMade(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 12) + "end"
	trial := trialname.Of(long, types.UID("u"), 3)
	for _, name := range []string{kubeflow.ExperimentKind, trainer.OptimizationJobKind} {
		if k := kindOf(name); !k.Made(trial+"-xyz", long) || k.Made("other-xyz", long) {
			t.Errorf("a %s is not known by the names of its trials", name)
		}
	}
}
