// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/suggestion"
	"diwan.dev/diwan/internal/tuning/trialname"
	"diwan.dev/diwan/observation"
)

func TestExperimentRunsToItsEnd(t *testing.T) {
	l := newLab(t, report)
	e := l.experiment("whole", 3, 8, func(e *v1beta1.Experiment) { e.Labels = map[string]string{"team": "vision"} })
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)

	best := int64(1000)
	trials := l.trials()
	indices := map[string]bool{}
	for i := range trials {
		trial := &trials[i]
		x, err := strconv.ParseInt(trial.Spec.ParameterAssignments[0].Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, x)
		index, ok := trialname.Index(e.Name, e.UID, trial.Name, 8)
		if !ok || trial.Annotations[v1beta1.AnnotationTrialIndex] != strconv.Itoa(index) {
			t.Errorf("trial %s has index %q, its name says %d, %v", trial.Name, trial.Annotations[v1beta1.AnnotationTrialIndex], index, ok)
		}
		indices[trial.Annotations[v1beta1.AnnotationTrialIndex]] = true
		if trial.Labels["team"] != "vision" || trial.Labels[v1beta1.LabelExperiment] != e.Name {
			t.Errorf("trial %s has labels %v", trial.Name, trial.Labels)
		}
		c := trial.Status.Conditions.Get(v1beta1.ConditionSucceeded)
		if c == nil || c.Reason != "TrialSucceeded. Job reason: CompletionsReached" {
			t.Errorf("trial %s ended with %+v", trial.Name, trial.Status.Conditions)
		}
		want := &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: strconv.FormatInt(x, 10), Max: strconv.FormatInt(x, 10), Latest: strconv.FormatInt(x, 10)}}}
		if diff := cmp.Diff(want, trial.Status.Observation); diff != "" {
			t.Errorf("observation of %s: -want, +got:\n%s", trial.Name, diff)
		}
	}
	if len(trials) != 8 || len(indices) != 8 {
		t.Errorf("%d trials with %d indices, want 8", len(trials), len(indices))
	}
	l.eventually(func() string {
		l.get(e)
		if e.Status.TrialsSucceeded == 8 && e.Status.Trials == 8 && len(e.Status.SucceededTrialList) == 8 {
			return ""
		}
		return fmt.Sprintf("counts of 8 in %+v", e.Status)
	})
	if got := e.Status.CurrentOptimalTrial; got.Observation.Metrics[0].Min != strconv.FormatInt(best, 10) {
		t.Errorf("the optimal trial is %+v, want loss %d", got, best)
	}
	if e.Status.StartTime == nil || e.Status.CompletionTime == nil || e.Status.Conditions.IsTrue(v1beta1.ConditionRunning) {
		t.Errorf("the experiment ended with %+v", e.Status)
	}
	l.eventually(func() string { return l.noJobs() })

	s := &v1beta1.Suggestion{}
	s.Namespace, s.Name = e.Namespace, e.Name
	l.eventually(func() string {
		l.get(s)
		if s.Status.Conditions.IsTrue(v1beta1.ConditionSucceeded) {
			return ""
		}
		return "the suggestion's end"
	})
	if s.Spec.Requests != 8 || s.Status.SuggestionCount != 8 || len(s.Status.Suggestions) != 8 {
		t.Errorf("%d suggestions were requested, %d made, %d are listed; want 8", s.Spec.Requests, s.Status.SuggestionCount, len(s.Status.Suggestions))
	}
	if len(s.Status.AlgorithmSettings) != 1 || s.Status.AlgorithmSettings[0].Name != "random_state" {
		t.Errorf("the seed is not stored: %v", s.Status.AlgorithmSettings)
	}
}

// noJobs says what Jobs there are, "" for none.
func (l *lab) noJobs() string {
	l.t.Helper()
	var jobs batchv1.JobList
	if err := l.client.List(l.t.Context(), &jobs, client.InNamespace(l.namespace)); err != nil {
		l.t.Fatal(err)
	}
	if len(jobs.Items) == 0 {
		return ""
	}
	return fmt.Sprintf("the end of %d Jobs", len(jobs.Items))
}

func TestGoal(t *testing.T) {
	l := newLab(t, report)
	e := l.experiment("goal", 2, 100, func(e *v1beta1.Experiment) { e.Spec.Objective.Goal = ptr.To(30.0) })
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentGoalReached)
	if best, err := strconv.Atoi(e.Status.CurrentOptimalTrial.Observation.Metrics[0].Latest); err != nil || best > 30 {
		t.Errorf("the goal is reached with %+v", e.Status.CurrentOptimalTrial)
	}
}

func TestFailures(t *testing.T) {
	l := newLab(t, func(context.Context, *corev1.Pod) (string, int32) { return "", 1 })
	e := l.experiment("failing", 1, 10, func(e *v1beta1.Experiment) {
		e.Spec.MaxFailedTrialCount = ptr.To(int32(2))
		e.Spec.TrialTemplate.Retain = true
	})
	l.waitFor(e, v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed)
	if e.Status.TrialsFailed != 2 || len(e.Status.FailedTrialList) != 2 {
		t.Errorf("the experiment failed with %+v", e.Status)
	}
	trials := l.trials()
	if c := trials[0].Status.Conditions.Get(v1beta1.ConditionFailed); c == nil || c.Reason != "TrialFailed. Job reason: BackoffLimitExceeded" {
		t.Errorf("a trial failed with %+v", trials[0].Status.Conditions)
	}
	if l.noJobs() == "" {
		t.Error("retained Jobs are gone")
	}
}

func TestMetricsUnavailable(t *testing.T) {
	l := newLab(t, func(context.Context, *corev1.Pod) (string, int32) { return "", 0 })
	e := l.experiment("silent", 2, 2)
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if e.Status.TrialMetricsUnavailable != 2 || e.Status.CurrentOptimalTrial.BestTrialName != "" {
		t.Errorf("the experiment ended with %+v", e.Status)
	}
	trials := l.trials()
	if len(trials) != 2 {
		t.Errorf("%d trials, want 2: a trial without metrics spends the budget too", len(trials))
	}
	c := trials[0].Status.Conditions.Get(v1beta1.ConditionMetricsUnavailable)
	if c == nil || c.Reason != "MetricsUnavailable. Job reason: CompletionsReached" {
		t.Errorf("a silent trial ended with %+v", trials[0].Status.Conditions)
	}
}

func TestSpaceIsExhausted(t *testing.T) {
	l := newLab(t, func(context.Context, *corev1.Pod) (string, int32) { return "1", 0 })
	e := l.experiment("small", 2, 10, func(e *v1beta1.Experiment) {
		e.Spec.Parameters[0].FeasibleSpace = v1beta1.FeasibleSpace{Min: "1", Max: "3"}
	})
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentSuggestionEndReached)
	if len(l.trials()) != 3 {
		t.Errorf("%d trials, want each of the 3 values once", len(l.trials()))
	}
	s := &v1beta1.Suggestion{}
	s.Namespace, s.Name = e.Namespace, e.Name
	l.get(s)
	if !suggestion.Ended(s) {
		t.Errorf("the suggestion has %+v", s.Status.Conditions)
	}
}

func TestRestart(t *testing.T) {
	for _, policy := range []v1beta1.ResumePolicyType{v1beta1.LongRunning, v1beta1.FromVolume} {
		t.Run(string(policy), func(t *testing.T) {
			l := newLab(t, report)
			e := l.experiment("again", 2, 2, func(e *v1beta1.Experiment) { e.Spec.ResumePolicy = policy })
			l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
			before := e.DeepCopy()
			e.Spec.MaxTrialCount = ptr.To(int32(5))
			if err := l.client.Patch(t.Context(), e, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			l.eventually(func() string {
				l.get(e)
				if e.Status.TrialsSucceeded == 5 && e.Status.Conditions.IsTrue(v1beta1.ConditionSucceeded) {
					return ""
				}
				return fmt.Sprintf("5 trials in %+v", e.Status)
			})
			if !e.Status.Conditions.IsTrue(v1beta1.ConditionRestarting) {
				t.Errorf("no trace of the restart in %+v", e.Status.Conditions)
			}
			seen := map[string]bool{}
			for _, trial := range l.trials() {
				seen[trial.Spec.ParameterAssignments[0].Value] = true
			}
			if len(seen) != 5 {
				t.Errorf("%d different values, want 5: suggestions went on after the restart", len(seen))
			}
		})
	}
}

func TestLoweringParallelismEndsTheNewest(t *testing.T) {
	var hold sync.Map // names of Pods' trials to the channel that lets them end
	gate := make(chan struct{})
	l := newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
		hold.Store(pod.Labels[v1beta1.LabelTrial], true)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return parameterOf(pod), 0
	})
	started := func(n int) func() string {
		return func() string {
			count := 0
			hold.Range(func(any, any) bool { count++; return true })
			if count >= n {
				return ""
			}
			return fmt.Sprintf("%d Pods of %d", count, n)
		}
	}
	e := l.experiment("narrow", 3, 4)
	l.eventually(started(3))
	l.get(e)
	before := e.DeepCopy()
	e.Spec.ParallelTrialCount = ptr.To(int32(1))
	if err := l.client.Patch(t.Context(), e, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	l.eventually(func() string {
		if left := l.trials(); len(left) == 1 && left[0].Annotations[v1beta1.AnnotationTrialIndex] == "0" {
			return ""
		}
		return "the end of all trials but the oldest"
	})
	close(gate)
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if n := len(l.trials()); n != 4 {
		t.Errorf("%d trials, want 4: those that were ended run later", n)
	}
}

func TestDeletingAnExperimentDeletesEverything(t *testing.T) {
	gate := make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	l := newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
		select {
		case <-first: // the first ends, the others wait
		default:
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		return parameterOf(pod), 0
	})
	defer close(gate)
	e := l.experiment("gone", 2, 5)
	l.eventually(func() string {
		l.get(e)
		if e.Status.TrialsSucceeded == 1 {
			return ""
		}
		return "the first trial's end"
	})
	done := observation.Trial{Namespace: e.Namespace, Name: e.Status.SucceededTrialList[0]}
	if points, err := l.store.Points(t.Context(), done, observation.Query{}); err != nil || len(points) != 1 {
		t.Fatalf("the observation is %v, %v", points, err)
	}
	if err := l.client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	l.eventually(func() string {
		if n := len(l.trials()); n > 0 {
			return fmt.Sprintf("the end of %d trials", n)
		}
		return l.noJobs()
	})
	if points, err := l.store.Points(t.Context(), done, observation.Query{}); err != nil || len(points) != 0 {
		t.Errorf("of the deleted trial there is left %v, %v", points, err)
	}
}

func TestInvalidRunObjectFailsTheTrial(t *testing.T) {
	l := newLab(t, report)
	e := l.experiment("invalid", 1, 1, func(e *v1beta1.Experiment) {
		err := unstructured.SetNestedField(e.Spec.TrialTemplate.TrialSpec.Object, "no label", "spec", "template", "spec", "nodeSelector", "bad")
		if err != nil {
			t.Fatal(err)
		}
	})
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if c := l.trials()[0].Status.Conditions.Get(v1beta1.ConditionFailed); c == nil {
		t.Errorf("the trial has %+v, want that it failed", l.trials()[0].Status.Conditions)
	}
}

// firstTrial waits until the only trial of the namespace has a condition, and
// returns it.
func (l *lab) firstTrial(condition v1beta1.ConditionType) *v1beta1.Trial {
	l.t.Helper()
	var first *v1beta1.Trial
	l.eventually(func() string {
		trials := l.trials()
		if len(trials) == 1 && trials[0].Status.Conditions.IsTrue(condition) {
			first = &trials[0]
			return ""
		}
		return fmt.Sprintf("condition %s of %d trials", condition, len(trials))
	})
	return first
}

func TestMetricsAreVisibleWhileATrialRuns(t *testing.T) {
	gate := make(chan struct{})
	var l *lab
	ready := make(chan struct{})
	l = newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
		<-ready
		trial := observation.Trial{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelTrial]}
		if err := l.store.Append(ctx, trial, observation.Batch{Source: "so far", To: 1,
			Points: []observation.Point{{Time: time.Now(), Metric: "loss", Value: "0.7"}}}); err != nil {
			t.Error(err)
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return "0.5", 0
	})
	close(ready)
	e := l.experiment("open", 1, 1)
	trial := l.firstTrial(v1beta1.ConditionRunning)
	if m := trial.Status.Observation.Get("loss"); m == nil || m.Latest != "0.7" {
		t.Errorf("a running trial shows %+v, want loss 0.7", trial.Status.Observation)
	}
	close(gate)
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if m := e.Status.CurrentOptimalTrial.Observation.Metrics[0]; m.Min != "0.5" || m.Max != "0.7" {
		t.Errorf("the optimal trial shows %+v", m)
	}
}

func TestDeletedRunObjectIsMadeAgain(t *testing.T) {
	var runs atomic.Int32
	l := newLab(t, func(ctx context.Context, _ *corev1.Pod) (string, int32) {
		if runs.Add(1) == 1 {
			<-ctx.Done() // until someone deletes the Job
			return "", 0
		}
		return "2", 0
	})
	e := l.experiment("again", 1, 1)
	trial := l.firstTrial(v1beta1.ConditionRunning)
	name := observation.Trial{Namespace: trial.Namespace, Name: trial.Name}
	if err := l.store.Append(t.Context(), name, observation.Batch{Source: "first run", To: 1,
		Points: []observation.Point{{Time: time.Now(), Metric: "loss", Value: "1"}}}); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	job.Namespace, job.Name = trial.Namespace, trial.Name
	if err := l.client.Delete(t.Context(), job, client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if got := e.Status.CurrentOptimalTrial.Observation.Metrics[0]; runs.Load() != 2 || got.Min != "2" {
		t.Errorf("%d runs came to %+v, want the second's 2 alone", runs.Load(), got)
	}
}
