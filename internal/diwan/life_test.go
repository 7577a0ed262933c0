// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// gated is a program that reports its parameter when the gate opens, and says
// before how many of it run.
type gated struct {
	gate    chan struct{}
	running atomic.Int32
}

func newGated() *gated { return &gated{gate: make(chan struct{})} }

func (g *gated) run(ctx context.Context, pod *corev1.Pod) (string, int32) {
	g.running.Add(1)
	defer g.running.Add(-1)
	select {
	case <-g.gate:
	case <-ctx.Done():
	}
	return parameterOf(pod), 0
}

// waitFor waits until n of the program run.
func (g *gated) waitFor(l *lab, n int32) {
	l.t.Helper()
	l.eventually(func() string {
		if got := g.running.Load(); got != n {
			return fmt.Sprintf("%d running programs, there are %d", n, got)
		}
		return ""
	})
}

// change changes an experiment's spec.
func (l *lab) change(e *v1beta1.Experiment, change func(*v1beta1.ExperimentSpec)) {
	l.t.Helper()
	l.get(e)
	before := e.DeepCopy()
	change(&e.Spec)
	if err := l.client.Patch(l.t.Context(), e, client.MergeFrom(before)); err != nil {
		l.t.Fatal(err)
	}
}

func TestSuspend(t *testing.T) {
	g := newGated()
	l := newLab(t, g.run)
	e := l.experiment("pause", 2, 5)
	g.waitFor(l, 2)
	l.change(e, func(s *v1beta1.ExperimentSpec) { s.Suspend = true })
	l.waitFor(e, v1beta1.ConditionSuspended, v1beta1.ReasonExperimentSuspended)
	close(g.gate)
	l.eventually(func() string {
		if l.get(e); e.Status.TrialsSucceeded == 2 {
			return ""
		}
		return "the end of the trials that ran"
	})
	if e.Status.Trials != 2 || e.IsCompleted() || e.Status.Conditions.Last() != v1beta1.ConditionSuspended {
		t.Errorf("a suspended experiment came to %+v", e.Status)
	}
	l.change(e, func(s *v1beta1.ExperimentSpec) { s.Suspend = false })
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if n := len(l.trials()); n != 5 || e.Status.Conditions.Get(v1beta1.ConditionSuspended) != nil {
		t.Errorf("%d trials, and %+v", n, e.Status)
	}
}

func TestSuspendTrials(t *testing.T) {
	g := newGated()
	l := newLab(t, g.run)
	e := l.experiment("pause-all", 2, 3)
	g.waitFor(l, 2)
	l.change(e, func(s *v1beta1.ExperimentSpec) { s.Suspend, s.SuspendPolicy = true, v1beta1.SuspendTrials })
	l.waitFor(e, v1beta1.ConditionSuspended, v1beta1.ReasonExperimentSuspended)
	g.waitFor(l, 0)
	l.eventually(func() string {
		for _, trial := range l.trials() {
			if c := trial.Status.Conditions.Get(v1beta1.ConditionRunning); c == nil || c.Status != corev1.ConditionFalse || c.Reason != v1beta1.ReasonTrialSuspended {
				return fmt.Sprintf("that trial %s is suspended: %+v", trial.Name, trial.Status)
			}
		}
		return ""
	})
	close(g.gate)
	l.change(e, func(s *v1beta1.ExperimentSpec) { s.Suspend = false })
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if e.Status.TrialsSucceeded != 3 {
		t.Errorf("the experiment came to %+v", e.Status)
	}
	l.eventually(l.noJobs)
}

// TestStopTrialsAtEnd has the first trial reach the goal while others run, and
// one wait for its kind.
func TestStopTrialsAtEnd(t *testing.T) {
	for _, retain := range []bool{false, true} {
		t.Run(fmt.Sprint("retain=", retain), func(t *testing.T) {
			var first atomic.Bool
			goal := make(chan struct{})
			ready := make(chan *lab, 1)
			l := newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
				l := <-ready
				ready <- l
				trial := observation.Trial{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelTrial]}
				if err := l.store.Append(ctx, trial, observation.Batch{Source: "early", To: 1,
					Points: []observation.Point{{Time: time.Now(), Metric: "loss", Value: "500"}}}); err != nil {
					l.t.Error(err)
				}
				if first.CompareAndSwap(false, true) {
					<-goal
					return parameterOf(pod), 0
				}
				<-ctx.Done()
				return "", 0
			})
			ready <- l
			e := l.experiment("goal", 3, 9, func(e *v1beta1.Experiment) {
				e.Spec.Objective.Goal = ptr.To(100.0)
				e.Spec.StopTrialsAtEnd = true
				e.Spec.TrialTemplate.Retain = retain
			})
			l.eventually(func() string {
				if l.get(e); e.Status.TrialsRunning == 3 {
					return ""
				}
				return fmt.Sprintf("3 running trials in %+v", e.Status)
			})
			close(goal)
			l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentGoalReached)
			l.eventually(func() string {
				if l.get(e); e.Status.TrialsKilled == 2 && e.Status.TrialsSucceeded == 1 && len(e.Status.KilledTrialList) == 2 {
					return ""
				}
				return fmt.Sprintf("2 killed trials in %+v", e.Status)
			})
			for _, trial := range l.trials() {
				c := trial.Status.Conditions.Get(v1beta1.ConditionKilled)
				if c == nil {
					continue
				}
				if c.Reason != v1beta1.ReasonTrialKilled || c.Message != "Trial is killed: the experiment has ended, for the reason ExperimentGoalReached" ||
					trial.Status.CompletionTime == nil || trial.Status.Conditions.IsTrue(v1beta1.ConditionRunning) {
					t.Errorf("trial %s was killed with %+v", trial.Name, trial.Status)
				}
				if m := trial.Status.Observation.Get("loss"); m == nil || m.Latest != "500" {
					t.Errorf("of trial %s there is left %+v", trial.Name, trial.Status.Observation)
				}
			}
			l.checkJobs(retain, 2)
		})
	}
}

func TestTimeLimitOfAnExperiment(t *testing.T) {
	var first atomic.Bool
	l := newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
		if first.CompareAndSwap(false, true) {
			return "7", 0
		}
		<-ctx.Done()
		return "", 0
	})
	e := l.experiment("timed", 2, 9, func(e *v1beta1.Experiment) { e.Spec.TimeLimitSeconds = ptr.To(int64(10)) })
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentTimeLimitReached)
	if e.Status.CurrentOptimalTrial.Observation.Get("loss").Min != "7" || e.ActiveTime(time.Now()) < 10*time.Second {
		t.Errorf("the experiment came to %+v", e.Status)
	}
	l.eventually(func() string {
		if l.get(e); e.Status.TrialsRunning+e.Status.TrialsPending == 0 && e.Status.TrialsKilled == 2 {
			return ""
		}
		return fmt.Sprintf("the end of its trials in %+v", e.Status)
	})
	l.eventually(l.noJobs)
}

func TestTimeLimitOfATrial(t *testing.T) {
	l := newLab(t, func(ctx context.Context, _ *corev1.Pod) (string, int32) {
		<-ctx.Done()
		return "", 0
	})
	name := strings.Repeat("slow-", 12) + "too" // 63 characters: the longest that there is
	e := l.experiment(name, 1, 1, func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate.TimeLimitSeconds = ptr.To(int64(1))
		e.Spec.TrialTemplate.MaxRetryCount = 3
	})
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	trial := l.trials()[0]
	c := trial.Status.Conditions.Get(v1beta1.ConditionFailed)
	if c == nil || c.Reason != v1beta1.ReasonTrialTimeLimitExceeded || c.Message != "Trial has failed: its run took longer than its time limit of 1s" ||
		trial.Status.Retries != 0 || e.Status.TrialsFailed != 1 || len(trial.Name) > 49 || trial.Labels[v1beta1.LabelExperiment] != name {
		t.Errorf("trial %s ended with %+v", trial.Name, trial.Status)
	}
	l.eventually(l.noJobs)
}

// TestRetries has the runs of one trial fail twice, and those of another always.
func TestRetries(t *testing.T) {
	runs := map[string]*atomic.Int32{"lucky": {}, "hopeless": {}}
	ready := make(chan *lab, 1)
	l := newLab(t, func(ctx context.Context, pod *corev1.Pod) (string, int32) {
		l := <-ready
		ready <- l
		kind := pod.Labels[v1beta1.LabelExperiment]
		n := runs[kind].Add(1)
		trial := observation.Trial{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelTrial]}
		if err := l.store.Append(ctx, trial, observation.Batch{Source: string(pod.UID) + "/early", To: 1,
			Points: []observation.Point{{Time: time.Now(), Metric: "loss", Value: strconv.Itoa(int(n))}}}); err != nil {
			l.t.Error(err)
		}
		if kind == "hopeless" || n < 3 {
			return "", 1
		}
		return "30", 0
	})
	ready <- l
	retrying := func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate.MaxRetryCount = 2
		e.Spec.MaxFailedTrialCount = ptr.To(int32(1))
	}
	lucky, hopeless := l.experiment("lucky", 1, 1, retrying), l.experiment("hopeless", 1, 1, retrying)
	l.waitFor(lucky, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	l.waitFor(hopeless, v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed)
	for kind, n := range runs {
		if n.Load() != 3 {
			t.Errorf("the %s trial ran %d times, want 3", kind, n.Load())
		}
	}
	for _, trial := range l.trials() {
		if trial.Status.Retries != 2 {
			t.Errorf("trial %s counts %d retries, want 2", trial.Name, trial.Status.Retries)
		}
	}
	if m := lucky.Status.CurrentOptimalTrial.Observation.Get("loss"); m.Min != "3" || m.Latest != "30" || lucky.Status.TrialsFailed != 0 {
		t.Errorf("the third run alone counts, not %+v of %+v", m, lucky.Status)
	}
	l.eventually(l.noJobs)
	l.wantEvents(v1beta1.ReasonTrialRetrying, 4)
}

// wantEvents waits for so many events of the namespace with a reason.
func (l *lab) wantEvents(reason string, want int) {
	l.t.Helper()
	l.eventually(func() string {
		var events corev1.EventList
		if err := l.client.List(l.t.Context(), &events, client.InNamespace(l.namespace)); err != nil {
			l.t.Fatal(err)
		}
		var notes []string
		for _, e := range events.Items {
			if e.Reason == reason {
				notes = append(notes, e.Message)
			}
		}
		if len(notes) != want {
			return fmt.Sprintf("%d events %s, there are:\n%s", want, reason, strings.Join(notes, "\n"))
		}
		return ""
	})
}

// TestOtherKindsAreStoppedAndSuspended does with a kind that cannot be suspended
// what Jobs can.
func TestOtherKindsAreStoppedAndSuspended(t *testing.T) {
	l := newLab(t, report)
	kind := l.define("Stubborn")
	l.permit(kind)
	e := l.experiment("stubborn", 1, 3, ofKind(kind), func(e *v1beta1.Experiment) {
		e.Spec.SuspendPolicy, e.Spec.StopTrialsAtEnd = v1beta1.SuspendTrials, true
	})
	first := l.onlyRun(kind)
	l.report(first.GetName(), "70")
	l.change(e, func(s *v1beta1.ExperimentSpec) { s.Suspend = true })
	l.eventually(func() string {
		if n := len(l.running(kind)); n > 0 {
			return "that nothing runs"
		}
		return ""
	})
	l.change(e, func(s *v1beta1.ExperimentSpec) { s.Suspend = false })
	second := l.onlyRun(kind)
	if second.GetName() != first.GetName() || second.GetUID() == first.GetUID() {
		t.Errorf("%s was made after %s, want another of the same name", second.GetName(), first.GetName())
	}
	if points, err := l.store.Points(t.Context(), observation.Trial{Namespace: l.namespace, Name: first.GetName()}, observation.Query{}); err != nil || len(points) > 0 {
		t.Errorf("of the first run there is left %v, %v", points, err)
	}
	l.change(e, func(s *v1beta1.ExperimentSpec) { s.TimeLimitSeconds = ptr.To(int64(1)) })
	l.waitFor(e, v1beta1.ConditionFailed, v1beta1.ReasonExperimentTimeLimitReached)
	l.eventually(func() string {
		if l.get(e); e.Status.TrialsKilled == 1 && len(l.running(kind)) == 0 {
			return ""
		}
		return fmt.Sprintf("the end of the trial in %+v", e.Status)
	})
}
