// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/cli/progress"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

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
	if got := Objective(e); got != (progress.Objective{Metric: "m", Maximize: true}) {
		t.Errorf("objective is %+v", got)
	}
	if got := Objective(&kubeflow.Experiment{}); got != (progress.Objective{}) {
		t.Errorf("no objective is %+v", got)
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{
		Spec: batchv1.JobSpec{Completions: ptr.To[int32](4), Parallelism: ptr.To[int32](2)},
		Status: batchv1.JobStatus{
			Active: 1, Succeeded: 2, Failed: 1,
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: noon}},
		},
	}
	want := progress.Status{
		Condition: progress.ConditionFailed, Reason: "BackoffLimitExceeded", Ended: noon.Time, Planned: 4, Parallel: 2,
		Counts: progress.Counts{Running: 1, Succeeded: 2, Failed: 1},
	}
	if diff := cmp.Diff(want, jobStatus(job)); diff != "" {
		t.Errorf("job (-want +got)\n%s", diff)
	}
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodFailed,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: noon},
		}}},
	}}
	want = progress.Status{Condition: progress.ConditionFailed, Reason: "Error", Message: "container main ended with exit code 3", Ended: noon.Time}
	if diff := cmp.Diff(want, podStatus(pod)); diff != "" {
		t.Errorf("pod (-want +got)\n%s", diff)
	}
}

func TestTrainingJob(t *testing.T) {
	t.Parallel()
	job := &v1.PyTorchJob{
		Spec: v1.PyTorchJobSpec{PyTorchReplicaSpecs: map[v1.ReplicaType]*v1.ReplicaSpec{v1.Master: {}, v1.Worker: {Replicas: ptr.To[int32](3)}, "Odd": nil}},
		Status: v1.JobStatus{
			StartTime: &noon, CompletionTime: &noon,
			ReplicaStatuses: map[v1.ReplicaType]*v1.ReplicaStatus{v1.Master: {Succeeded: 1}, v1.Worker: {Active: 2, Failed: 1}, "Odd": nil},
			Conditions: []v1.JobCondition{
				{Type: v1.JobRunning, Status: corev1.ConditionFalse, Reason: "PyTorchJobRunning"},
				{Type: v1.JobFailed, Status: corev1.ConditionTrue, Reason: "PyTorchJobFailed", Message: "because"},
			},
		},
	}
	want := progress.Status{
		Condition: progress.ConditionFailed, Reason: "PyTorchJobFailed", Message: "because", Started: noon.Time, Ended: noon.Time,
		Planned: 4, Parallel: 4, Counts: progress.Counts{Running: 2, Succeeded: 1, Failed: 1},
	}
	if diff := cmp.Diff(want, trainingStatus(job)); diff != "" {
		t.Errorf("status (-want +got)\n%s", diff)
	}
	if !Followable("kubeflow.org/v2beta1", "MPIJob") || Followable("kubeflow.org/v2beta1", "TFJob") {
		t.Error("of v2beta1 MPIJobs can be followed, and nothing else")
	}
	for kind, want := range map[string]bool{"PyTorchJob": true, "MPIJob": true, "Trial": false} {
		if got := Followable("kubeflow.org/v1", kind); got != want {
			t.Errorf("a %s can be followed: %v, want %v", kind, got, want)
		}
	}
}

// TestGone holds deletions to what they mean: a trial is forgotten, a followed object has failed
// unless it was seen to end.
func TestTrainJob(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(noon.Add(-time.Minute))
	job := &trainer.TrainJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: since}}
	job.Status.JobsStatus = []trainer.JobStatus{{Name: "data", Succeeded: ptr.To(int32(1))}, {Name: "node", Active: ptr.To(int32(1))}}
	want := progress.Status{Started: since.Time, Counts: progress.Counts{Running: 1, Succeeded: 1}}
	if diff := cmp.Diff(want, trainJobStatus(job)); diff != "" {
		t.Errorf("a job that runs (-want +got):\n%s", diff)
	}
	job.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: "True", Reason: "FailedJobs", Message: "m", LastTransitionTime: noon}}
	want.Condition, want.Reason, want.Message, want.Ended = progress.ConditionFailed, "FailedJobs", "m", noon.Time
	if diff := cmp.Diff(want, trainJobStatus(job)); diff != "" {
		t.Errorf("a job that failed (-want +got):\n%s", diff)
	}
	search := &trainer.OptimizationJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: since}}
	search.Spec.NumTrials, search.Spec.ParallelTrials = 4, 2
	search.Spec.Objectives = []trainer.Objective{{Metric: "accuracy", Direction: trainer.Maximize}}
	if got := optimizationJobObjective(search); got != (progress.Objective{Metric: "accuracy", Maximize: true}) {
		t.Errorf("a search optimises %+v", got)
	}
	search.Status = &trainer.OptimizationJobStatus{Conditions: []metav1.Condition{{Type: "Complete", Status: "True", LastTransitionTime: noon}}}
	want = progress.Status{Started: since.Time, Planned: 4, Parallel: 2, Condition: progress.ConditionSucceeded, Ended: noon.Time}
	if diff := cmp.Diff(want, optimizationJobStatus(search)); diff != "" {
		t.Errorf("a search that ended (-want +got):\n%s", diff)
	}
}

// TestTrialsOfASearch holds whose trials an OptimizationJob shows.
func TestTrialsOfASearch(t *testing.T) {
	t.Parallel()
	f := &follower{id: progress.ID{Kind: "OptimizationJob", Namespace: "n", Name: "x"}, uid: "search"}
	w := progress.NewWork(f.id, progress.Objective{Metric: "accuracy", Maximize: true}, true, noon.Time)
	trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: "x-1", OwnerReferences: []metav1.OwnerReference{{UID: "experiment", Controller: ptr.To(true)}}}}
	trial.Status.Conditions.Set(noon, kubeflow.ConditionFailed, corev1.ConditionTrue, "r", "m")
	f.fact(trial, false).Apply(w, noon.Time)
	earlier := trial.DeepCopy()
	earlier.Name, earlier.DeletionTimestamp = "x-0", &noon
	f.fact(earlier, false).Apply(w, noon.Time)
	if r := progress.NewReport(w.View(noon.Time)); r.Trials == nil || r.Trials.Total != 1 || r.Trials.Failed != 1 || r.Pods != nil {
		t.Errorf("its report is %+v, want one trial, which failed", r)
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	f := &follower{id: progress.ID{Kind: "Job", Namespace: "n", Name: "x"}}
	w := progress.NewWork(f.id, progress.Objective{}, true, noon.Time)

	finished := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}
	f.gone(finished).Apply(w, noon.Time)
	if w.Condition() != progress.ConditionSucceeded {
		t.Errorf("a Job that is cleaned away after its end is %q, want Succeeded", w.Condition())
	}
	events := f.gone(cache.DeletedFinalStateUnknown{Obj: &batchv1.Job{}}).Apply(w, noon.Time)
	if len(events) != 1 || events[0].Reason != "Deleted" {
		t.Errorf("the deletion of a running Job is told as %+v", events)
	}
	if got := f.gone(&kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: "t"}}); got.removed != "t" {
		t.Errorf("the deletion of a trial is told as %+v", got)
	}
}

// TestEarlierTrials holds trials of a deleted experiment apart from those of one of its name.
func TestEarlierTrials(t *testing.T) {
	t.Parallel()
	f := &follower{uid: "new"}
	for uid, want := range map[types.UID]bool{"new": true, "old": false} {
		trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}}}
		if got := f.fact(trial, false).trial != nil; got != want {
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
