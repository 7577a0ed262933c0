// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/suggestion"
)

// asking is an experiment that runs, with these counts.
func asking(parallel, limit int32) *v1beta1.Experiment {
	e := &v1beta1.Experiment{Spec: v1beta1.ExperimentSpec{
		Objective:          &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
		Algorithm:          &v1beta1.AlgorithmSpec{AlgorithmName: "random"},
		TrialTemplate:      &v1beta1.TrialTemplate{},
		ParallelTrialCount: &parallel,
		MaxTrialCount:      &limit,
		ResumePolicy:       v1beta1.NeverResume,
	}}
	e.Status.Conditions.Set(metav1.Time{}, v1beta1.ConditionRunning, corev1.ConditionTrue, v1beta1.ReasonExperimentRunning, "")
	return e
}

func completed(e *v1beta1.Experiment, reason string, policy v1beta1.ResumePolicyType) *v1beta1.Experiment {
	e.Spec.ResumePolicy = policy
	e.Status.Conditions.Complete(metav1.Time{}, v1beta1.ConditionSucceeded, reason, "")
	return e
}

// answering is a suggestion of which so many were requested and made.
func answering(requests, made int32) *v1beta1.Suggestion {
	return &v1beta1.Suggestion{
		Spec:   v1beta1.SuggestionSpec{Requests: requests},
		Status: v1beta1.SuggestionStatus{SuggestionCount: made},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	ended := answering(9, 5)
	ended.Status.Conditions.Set(metav1.Time{}, v1beta1.ConditionSucceeded, corev1.ConditionTrue, suggestion.ReasonEndReached, "")
	broken := answering(3, 0)
	broken.Status.Conditions.Set(metav1.Time{}, v1beta1.ConditionFailed, corev1.ConditionTrue, v1beta1.ReasonSuggestionFailed, "no such setting")
	lenient := asking(3, 10)
	lenient.Spec.MaxFailedTrialCount = ptr.To(int32(0))
	strict := asking(3, 10)
	strict.Spec.MaxFailedTrialCount = ptr.To(int32(2))
	endless := asking(3, 0)
	endless.Spec.MaxTrialCount = nil
	endlessDone := completed(asking(3, 0), v1beta1.ReasonExperimentGoalReached, v1beta1.LongRunning)
	endlessDone.Spec.MaxTrialCount = nil
	incomplete := asking(3, 10)
	incomplete.Spec.TrialTemplate = nil
	fresh := asking(3, 10)
	fresh.Status.Conditions = nil

	// timed has begun a minute ago, of which it was suspended for 20 s.
	timed := func(limit int64, change func(*v1beta1.Experiment)) *v1beta1.Experiment {
		e := asking(3, 10)
		e.Spec.TimeLimitSeconds = &limit
		e.Status.StartTime, e.Status.SuspendedSeconds = &metav1.Time{Time: worldTime.Add(-time.Minute)}, 20
		change(e)
		return e
	}
	asIs := func(*v1beta1.Experiment) {}
	paused := func(e *v1beta1.Experiment) {
		e.Spec.Suspend = true
		enter(&e.Status, &verdict{v1beta1.ConditionSuspended, v1beta1.ReasonExperimentSuspended, ""}, metav1.Time{Time: worldTime.Add(-10 * time.Second)})
	}
	suspended := timed(1000, paused)
	toSuspend := asking(3, 10)
	toSuspend.Spec.Suspend = true
	resumed := timed(1000, paused)
	resumed.Spec.Suspend = false

	max := v1beta1.ReasonExperimentMaxTrialsReached
	finish := func(c v1beta1.ConditionType, reason, message string) plan {
		return plan{verdict: &verdict{c, reason, message}}
	}
	full := finish(v1beta1.ConditionSucceeded, max, "Experiment has succeeded because max trial count has reached")
	restart := finish(v1beta1.ConditionRestarting, v1beta1.ReasonExperimentRestarting, "Experiment is restarted")
	for name, c := range map[string]struct {
		reason    string
		situation situation
		want      plan
	}{
		"Begin": {
			reason:    "A new experiment runs at once, and asks for as many suggestions as may run.",
			situation: situation{experiment: fresh},
			want: plan{requests: 3, verdict: &verdict{v1beta1.ConditionRunning, v1beta1.ReasonExperimentRunning,
				"Experiment is running"}},
		},
		"Suspend": {
			reason:    "A suspended experiment makes no trials and asks for none.",
			situation: situation{experiment: toSuspend, suggestion: answering(2, 2), waiting: []int{0, 1}},
			want:      plan{verdict: &verdict{v1beta1.ConditionSuspended, v1beta1.ReasonExperimentSuspended, "Experiment is suspended: no more trials are created"}},
		},
		"Suspended": {
			reason:    "Nothing more is to be done, and its time does not pass.",
			situation: situation{now: worldTime.Add(time.Hour), experiment: suspended, suggestion: answering(2, 2), waiting: []int{0, 1}},
			want:      plan{},
		},
		"SuspendedAndDone": {
			reason:    "What runs may end the experiment.",
			situation: situation{experiment: suspended, suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 10}}},
			want:      full,
		},
		"SuspendedAndNarrowed": {
			reason:    "Lowering parallelTrialCount ends trials all the same.",
			situation: situation{experiment: suspended, suggestion: answering(10, 10), trials: tally{counts: [states]int{running: 5}}},
			want:      plan{end: 2},
		},
		"Resume": {
			reason:    "It goes on where it stood.",
			situation: situation{now: worldTime, experiment: resumed, suggestion: answering(2, 2), waiting: []int{0, 1}},
			want: plan{create: []int{0, 1}, requests: 3, wake: 970 * time.Second,
				verdict: &verdict{v1beta1.ConditionRunning, v1beta1.ReasonExperimentRunning, "Experiment is running"}},
		},
		"InTime": {
			reason:    "Of a minute, 40 s count.",
			situation: situation{now: worldTime, experiment: timed(41, asIs), suggestion: answering(3, 3), trials: tally{counts: [states]int{running: 3}}},
			want:      plan{wake: time.Second},
		},
		"TimeIsUp": {
			reason:    "What was found until then is the result.",
			situation: situation{now: worldTime, experiment: timed(40, asIs), suggestion: answering(3, 3), trials: tally{counts: [states]int{running: 2, succeeded: 1}, best: &v1beta1.Trial{}}},
			want: finish(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentTimeLimitReached,
				"Experiment has succeeded because its time limit of 40s was reached"),
		},
		"TimeIsUpInVain": {
			reason:    "Without a result it has failed.",
			situation: situation{now: worldTime, experiment: timed(40, asIs), suggestion: answering(3, 3), trials: tally{counts: [states]int{running: 3}}},
			want: finish(v1beta1.ConditionFailed, v1beta1.ReasonExperimentTimeLimitReached,
				"Experiment has failed because no trial had a result when its time limit of 40s was reached"),
		},
		"Create": {
			reason:    "Suggestions without a trial become trials.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(3, 3), waiting: []int{0, 1, 2}},
			want:      plan{create: []int{0, 1, 2}},
		},
		"CreateSome": {
			reason:    "No more than may run in parallel, the first first.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(5, 5), waiting: []int{1, 2, 4}, trials: tally{counts: [states]int{running: 2}}},
			want:      plan{create: []int{1}},
		},
		"Wait": {
			reason:    "What was asked for already is not asked for again.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(3, 0)},
			want:      plan{},
		},
		"Refill": {
			reason:    "For each trial that ended, one more suggestion.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(3, 3), trials: tally{counts: [states]int{running: 1, succeeded: 2}}},
			want:      plan{requests: 5},
		},
		"RefillToLimit": {
			reason:    "Requests never exceed maxTrialCount.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(9, 9), trials: tally{counts: [states]int{succeeded: 8, running: 1}}},
			want:      plan{requests: 10},
		},
		"UnavailableSpendsBudget": {
			reason:    "A trial without metrics is a trial: Katib makes one more than maxTrialCount here.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(10, 10), trials: tally{counts: [states]int{metricsUnavailable: 4, succeeded: 4, running: 2}}},
			want:      plan{},
		},
		"CreateAndAsk": {
			reason:    "Both, when the suggestions there are do not suffice.",
			situation: situation{experiment: asking(4, 10), suggestion: answering(4, 4), waiting: []int{3}, trials: tally{counts: [states]int{succeeded: 3}}},
			want:      plan{create: []int{3}, requests: 7},
		},
		"NoLimit": {
			reason:    "Without maxTrialCount it goes on.",
			situation: situation{experiment: endless, suggestion: answering(900, 900), trials: tally{counts: [states]int{succeeded: 900}}},
			want:      plan{requests: 903},
		},
		"Lowered": {
			reason:    "Lowering parallelTrialCount ends the surplus.",
			situation: situation{experiment: asking(2, 10), suggestion: answering(5, 5), trials: tally{counts: [states]int{running: 4, pending: 1}}},
			want:      plan{end: 3},
		},
		"LoweredAlready": {
			reason:    "Trials that are being deleted are no surplus, and hold their place.",
			situation: situation{experiment: asking(2, 10), suggestion: answering(5, 5), trials: tally{counts: [states]int{running: 4, pending: 1}, ending: 3}},
			want:      plan{},
		},
		"EndingHoldsPlace": {
			reason:    "A place is free when its trial is gone.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(5, 5), waiting: []int{4}, trials: tally{counts: [states]int{running: 3}, ending: 1}},
			want:      plan{},
		},
		"EarlyStoppedAwaited": {
			reason:    "No new trial before the observation of an early stopped one is there.",
			situation: situation{experiment: asking(1, 10), suggestion: answering(1, 1), trials: tally{counts: [states]int{earlyStopped: 1}, awaits: 1}},
			want:      plan{},
		},
		"Goal": {
			reason:    "The goal ends the experiment before anything else; what runs goes on.",
			situation: situation{experiment: strict, suggestion: answering(9, 9), trials: tally{counts: [states]int{running: 2, succeeded: 5, failed: 2}, goal: true}},
			want: finish(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentGoalReached,
				"Experiment has succeeded because Objective goal has reached"),
		},
		"TooManyFailed": {
			reason:    "Failed trials and those without metrics count alike.",
			situation: situation{experiment: strict, suggestion: answering(9, 9), trials: tally{counts: [states]int{failed: 1, metricsUnavailable: 1, succeeded: 8}}},
			want: finish(v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed,
				"Experiment has failed because max failed count has reached"),
		},
		"NoneMayFail": {
			reason:    "maxFailedTrialCount 0: the first failure ends it, but not before there is one.",
			situation: situation{experiment: lenient, suggestion: answering(3, 3), trials: tally{counts: [states]int{running: 3}}},
			want:      plan{},
		},
		"MaxTrials": {
			reason:    "All that may be are done.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 8, failed: 1, metricsUnavailable: 1}}},
			want:      full,
		},
		"MaxTrialsSomeDeleted": {
			reason:    "Trials that ended and were deleted since have spent their budget.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 7}}},
			want:      full,
		},
		"LimitLowered": {
			reason:    "With maxTrialCount lowered below what is done, it is over.",
			situation: situation{experiment: asking(3, 5), suggestion: answering(9, 9), waiting: []int{8}, trials: tally{counts: [states]int{succeeded: 6, running: 2}}},
			want:      full,
		},
		"SuggestionFailed": {
			reason:    "An algorithm that cannot work ends the experiment, with its message.",
			situation: situation{experiment: asking(3, 10), suggestion: broken},
			want:      finish(v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed, "Suggestion has failed: no such setting"),
		},
		"SuggestionEnded": {
			reason:    "A grid that was walked ends the experiment once its trials ended.",
			situation: situation{experiment: asking(3, 10), suggestion: ended, trials: tally{counts: [states]int{succeeded: 5}}},
			want: finish(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentSuggestionEndReached,
				"Experiment has succeeded because suggestion service has reached the end"),
		},
		"SuggestionEndedInVain": {
			reason:    "A space of which no point worked has no result.",
			situation: situation{experiment: asking(3, 10), suggestion: ended, trials: tally{counts: [states]int{failed: 4, metricsUnavailable: 1}}},
			want: finish(v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed,
				"Experiment has failed because suggestion service has reached the end and no trial has succeeded"),
		},
		"SuggestionEndedAllStoppedEarly": {
			reason:    "Trials that were stopped early have reported values.",
			situation: situation{experiment: asking(3, 10), suggestion: ended, trials: tally{counts: [states]int{failed: 4, earlyStopped: 1}}},
			want: finish(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentSuggestionEndReached,
				"Experiment has succeeded because suggestion service has reached the end"),
		},
		"MaxTrialsInVain": {
			reason:    "Katib says so too, and lets maxTrialCount be raised.",
			situation: situation{experiment: asking(3, 10), suggestion: answering(10, 10), trials: tally{counts: [states]int{failed: 10}}},
			want:      full,
		},
		"SuggestionEndedTrialsRun": {
			reason:    "Until then it asks for nothing more.",
			situation: situation{experiment: asking(3, 10), suggestion: ended, trials: tally{counts: [states]int{succeeded: 4, running: 1}}},
			want:      plan{},
		},
		"SuggestionEndedSomeWait": {
			reason:    "Suggestions that were made before the end still become trials.",
			situation: situation{experiment: asking(3, 10), suggestion: ended, waiting: []int{4}, trials: tally{counts: [states]int{succeeded: 4}}},
			want:      plan{create: []int{4}},
		},
		"Malformed": {
			reason:    "A spec that passed by admission fails with the field's name.",
			situation: situation{experiment: incomplete},
			want: finish(v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed,
				"Experiment has failed because spec.trialTemplate is missing"),
		},
		"Over": {
			reason:    "A completed experiment rests.",
			situation: situation{experiment: completed(asking(3, 10), max, v1beta1.LongRunning), suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 10}}},
			want:      plan{},
		},
		"RestartLongRunning": {
			reason:    "A raised maxTrialCount restarts it where the policy lets it.",
			situation: situation{experiment: completed(asking(3, 12), max, v1beta1.LongRunning), suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 10}}},
			want:      restart,
		},
		"RestartFromVolume": {
			reason:    "So does the other such policy.",
			situation: situation{experiment: completed(asking(3, 12), max, v1beta1.FromVolume), suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 10}}},
			want:      restart,
		},
		"NoRestartNever": {
			reason:    "Policy Never.",
			situation: situation{experiment: completed(asking(3, 12), max, v1beta1.NeverResume), suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 10}}},
			want:      plan{},
		},
		"NoRestartAfterGoal": {
			reason:    "Only an experiment that ran out of trials can have more. Katib restarts one without maxTrialCount for ever.",
			situation: situation{experiment: endlessDone, suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 10}}},
			want:      plan{},
		},
		"NoRestartWithoutWork": {
			reason:    "Trials were deleted, but the budget is spent: restarting would end at once, and restart again.",
			situation: situation{experiment: completed(asking(3, 10), max, v1beta1.LongRunning), suggestion: answering(10, 10), trials: tally{counts: [states]int{succeeded: 7}}},
			want:      plan{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decide(c.situation)
			if len(got.create) == 0 {
				got.create = nil
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(plan{}, verdict{})); diff != "" {
				t.Errorf("%s\ndecide(): -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestTimeOfALife follows an experiment that is suspended twice, ends and goes
// on again.
func TestTimeOfALife(t *testing.T) {
	t.Parallel()
	at := func(second int) metav1.Time {
		return metav1.Time{Time: worldTime.Add(time.Duration(second) * time.Second)}
	}
	e := &v1beta1.Experiment{}
	for _, step := range []struct {
		reason    string
		second    int
		condition v1beta1.ConditionType
		active    int // seconds at this moment
		last      v1beta1.ConditionType
	}{
		{"it begins", 0, v1beta1.ConditionRunning, 0, v1beta1.ConditionRunning},
		{"it has worked until it is suspended", 10, v1beta1.ConditionSuspended, 10, v1beta1.ConditionSuspended},
		{"a pause does not count", 25, v1beta1.ConditionRunning, 10, v1beta1.ConditionRunning},
		{"what follows does", 30, v1beta1.ConditionSuspended, 15, v1beta1.ConditionSuspended},
		{"it may end while it is suspended", 90, v1beta1.ConditionSucceeded, 15, v1beta1.ConditionSucceeded},
		{"the time after its end does not count", 100, v1beta1.ConditionRestarting, 15, v1beta1.ConditionRestarting},
		{"nor does that of starting", 100, v1beta1.ConditionRunning, 15, v1beta1.ConditionRunning},
		{"and it goes on", 107, v1beta1.ConditionSucceeded, 22, v1beta1.ConditionSucceeded},
	} {
		enter(&e.Status, &verdict{step.condition, "", ""}, at(step.second))
		if got := e.ActiveTime(at(step.second).Time); got != time.Duration(step.active)*time.Second || e.Status.Conditions.Last() != step.last {
			t.Errorf("%s: %v and %v, want %d s and %s", step.reason, got, e.Status.Conditions.Last(), step.active, step.last)
		}
		is := e.Status.Conditions.IsTrue
		if is(v1beta1.ConditionSuspended) && is(v1beta1.ConditionRunning) || is(v1beta1.ConditionSuspended) && e.IsCompleted() {
			t.Errorf("%s: the conditions are %+v", step.reason, e.Status.Conditions)
		}
	}
}
