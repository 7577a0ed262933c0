// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// reportAndWait is a program that reports its parameter, and goes on for ever
// where that is more than some bound.
func (l *lab) reportAndWait(bound int) program {
	return func(ctx context.Context, pod *corev1.Pod) (string, int32) {
		x := parameterOf(pod)
		if n, err := strconv.Atoi(x); err != nil || n <= bound {
			return x, 0
		}
		err := l.store.Append(ctx, observation.Trial{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelTrial]},
			observation.Batch{Source: "early", To: 1, Points: []observation.Point{{Time: time.Now(), Metric: "loss", Value: x}}})
		if err != nil && ctx.Err() == nil {
			l.t.Error(err)
		}
		<-ctx.Done()
		return "", 0
	}
}

// newLabWaiting is newLab with reportAndWait.
func newLabWaiting(t *testing.T, bound int) *lab {
	t.Helper()
	ready := make(chan *lab, 1)
	l := newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
		l := <-ready
		ready <- l
		return l.reportAndWait(bound)(ctx, pod)
	})
	ready <- l
	return l
}

// TestEarlyStopping stops the trials whose loss is above a threshold, and no
// others.
func TestEarlyStopping(t *testing.T) {
	for _, retain := range []bool{false, true} {
		t.Run(fmt.Sprint("retain=", retain), func(t *testing.T) {
			l := newLabWaiting(t, 50)
			e := l.experiment("stopping", 3, 8, func(e *v1beta1.Experiment) {
				e.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "random_state", Value: "3"}}
				e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "threshold",
					AlgorithmSettings: []v1beta1.EarlyStoppingSetting{{Name: "upper", Value: "50"}}}
				e.Spec.TrialTemplate.Retain = retain
			})
			l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
			stopped := 0
			for _, trial := range l.trials() {
				x := trial.Spec.ParameterAssignments[0].Value
				n, err := strconv.Atoi(x)
				if err != nil {
					t.Fatal(err)
				}
				if n > 50 {
					stopped++
				}
				l.checkEnd(&trial, x, n > 50)
			}
			if stopped == 0 || stopped == 8 {
				t.Fatalf("%d of 8 trials are above the threshold: the seed is of no use", stopped)
			}
			l.eventually(func() string {
				l.get(e)
				if int(e.Status.TrialsEarlyStopped) == stopped && int(e.Status.TrialsSucceeded) == 8-stopped && len(e.Status.EarlyStoppedTrialList) == stopped {
					return ""
				}
				return fmt.Sprintf("%d stopped trials in %+v", stopped, e.Status)
			})
			l.checkJobs(retain, stopped)
		})
	}
}

// checkEnd wants a trial to have ended in one of two ways, and not in both.
func (l *lab) checkEnd(trial *v1beta1.Trial, x string, early bool) {
	l.t.Helper()
	is := trial.Status.Conditions.IsTrue
	if is(v1beta1.ConditionEarlyStopped) != early || is(v1beta1.ConditionSucceeded) == early || is(v1beta1.ConditionRunning) ||
		trial.Status.CompletionTime == nil || trial.IsStopping() {
		l.t.Errorf("trial %s with %s ended with %+v", trial.Name, x, trial.Status)
	}
	if m := trial.Status.Observation.Get("loss"); m == nil || m.Latest != x {
		l.t.Errorf("trial %s with %s shows %+v", trial.Name, x, trial.Status.Observation)
	}
	if !early {
		return
	}
	c := trial.Status.Conditions.Get(v1beta1.ConditionEarlyStopped)
	want := fmt.Sprintf("Trial is early stopped: its value at step 1, %s, is above the bound 50", x)
	if c == nil || c.Reason != v1beta1.ReasonTrialEarlyStopped || c.Message != want || trial.Status.StoppedAtStep != 1 {
		l.t.Errorf("trial %s was stopped at %d with %+v, want %q", trial.Name, trial.Status.StoppedAtStep, c, want)
	}
}

// checkJobs wants the Jobs to be gone, or, retained, those of stopped trials to
// be suspended.
func (l *lab) checkJobs(retain bool, stopped int) {
	l.t.Helper()
	if !retain {
		l.eventually(l.noJobs)
		return
	}
	var jobs batchv1.JobList
	if err := l.client.List(l.t.Context(), &jobs); err != nil {
		l.t.Fatal(err)
	}
	suspended := 0
	for _, job := range jobs.Items {
		if job.Namespace == l.namespace && job.Spec.Suspend != nil && *job.Spec.Suspend {
			suspended++
		}
	}
	if suspended != stopped {
		l.t.Errorf("%d Jobs are suspended, want %d", suspended, stopped)
	}
}

// TestDecisionOutlivesWhoeverMadeIt writes down that a trial is to be stopped,
// as a controller that died just then did, and as Katib's collector does.
func TestDecisionOutlivesWhoeverMadeIt(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		decide  func(*v1beta1.TrialStatus)
		message string
	}{
		"Ours": {"the next controller ends what was to be ended",
			func(s *v1beta1.TrialStatus) { s.Stop(metav1.Now(), 7, "the test says so") }, "Trial is early stopped: the test says so"},
		"Katib": {"Katib's collector names no time of the end", func(s *v1beta1.TrialStatus) {
			s.Conditions.Set(metav1.Now(), v1beta1.ConditionEarlyStopped, corev1.ConditionTrue, v1beta1.ReasonTrialEarlyStopped, "Trial is early stopped")
		}, "Trial is early stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLabWaiting(t, 0)
			e := l.experiment("decided", 1, 1)
			trial := l.firstTrial(v1beta1.ConditionRunning)
			l.eventually(func() string {
				l.get(trial)
				c.decide(&trial.Status)
				if err := l.client.Status().Update(t.Context(), trial); err != nil {
					return err.Error()
				}
				return ""
			})
			l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
			l.eventually(func() string {
				l.get(trial)
				if trial.Status.CompletionTime == nil {
					return fmt.Sprintf("the end in %+v", trial.Status)
				}
				return ""
			})
			if got := trial.Status.Conditions.Get(v1beta1.ConditionEarlyStopped); got.Status != corev1.ConditionTrue || got.Message != c.message {
				t.Errorf("%s: the trial ended with %+v", c.reason, trial.Status.Conditions)
			}
			x := trial.Spec.ParameterAssignments[0].Value
			want := &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: x, Max: x, Latest: x}}}
			if diff := cmp.Diff(want, trial.Status.Observation); diff != "" {
				t.Errorf("observation: -want, +got:\n%s", diff)
			}
			l.eventually(l.noJobs)
		})
	}
}

// TestFixedRulesOfAMedian wants trials to bear the rule in Katib's form once
// there is a median.
func TestFixedRulesOfAMedian(t *testing.T) {
	l := newLabWaiting(t, 50)
	e := l.experiment("median", 1, 8, func(e *v1beta1.Experiment) {
		e.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "random_state", Value: "3"}}
		e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: []v1beta1.EarlyStoppingSetting{
			{Name: "min_trials_required", Value: "1"}, {Name: "start_step", Value: "1"}}}
	})
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	withRules := 0
	for _, trial := range l.trials() {
		for _, r := range trial.Spec.EarlyStoppingRules {
			withRules++
			if r.Name != "loss" || r.Comparison != v1beta1.ComparisonTypeGreater || r.StartStep != 1 {
				t.Errorf("trial %s bears the rule %+v", trial.Name, r)
			}
		}
	}
	if withRules == 0 || withRules == 8 {
		t.Errorf("%d trials bear a rule, want those that were made after one had succeeded", withRules)
	}
}
