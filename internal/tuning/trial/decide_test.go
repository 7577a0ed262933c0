// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	t.Parallel()
	run := func(outcome trialtemplate.State, change ...func(*runState)) *runState {
		r := &runState{outcome: outcome, started: noon.Add(-time.Minute)}
		for _, c := range change {
			c(r)
		}
		return r
	}
	leaving := func(r *runState) { r.leaving = true }
	suspended := func(r *runState) { r.suspended = true }
	second := func(r *runState) { r.attempt = 1 }
	const going, well, badly = trialtemplate.Running, trialtemplate.Succeeded, trialtemplate.Failed
	for name, c := range map[string]struct {
		reason string
		s      situation
		want   step
		wait   time.Duration
	}{
		"Begin":         {"a trial without a run object gets one", situation{}, stepStart, 0},
		"Go on":         {"one that runs is followed", situation{run: run(going)}, stepFollow, 0},
		"Succeeded":     {"the plain end", situation{run: run(well)}, stepJudge, 0},
		"Failed":        {"without retries the first failure is the end", situation{run: run(badly)}, stepJudge, 0},
		"Deleted":       {"someone deletes the run object: it is made again when it is gone", situation{run: run(going, leaving)}, stepWait, 0},
		"Retry":         {"a failure before the last is not the end", situation{retries: 1, run: run(badly)}, stepRetry, 0},
		"Clear":         {"the run that failed goes first", situation{retries: 1, failures: 1, failed: noon, run: run(badly)}, stepClear, 0},
		"Clearing":      {"until it is gone", situation{retries: 1, failures: 1, failed: noon, run: run(badly, leaving)}, stepWait, 0},
		"Pause":         {"the cause may pass by itself", situation{retries: 5, failures: 3, failed: noon.Add(-time.Second)}, stepWait, 3 * time.Second},
		"Again":         {"then the next run begins", situation{retries: 1, failures: 1, failed: noon.Add(-time.Second)}, stepStart, 0},
		"Second":        {"the second run is no remainder of the first", situation{retries: 1, failures: 1, run: run(going, second)}, stepFollow, 0},
		"Used up":       {"the last failure is the end", situation{retries: 1, failures: 1, run: run(badly, second)}, stepJudge, 0},
		"In time":       {"a limit is looked at when it passes", situation{limit: 70 * time.Second, run: run(going)}, stepFollow, 10 * time.Second},
		"Too long":      {"a minute is too long", situation{limit: time.Minute, run: run(going)}, stepExpire, 0},
		"Not begun":     {"a run that waits to begin takes no time", situation{limit: time.Second, run: run(going, func(r *runState) { r.started = time.Time{} })}, stepFollow, time.Second},
		"Just in time":  {"one that has ended has not taken too long", situation{limit: time.Second, run: run(well)}, stepJudge, 0},
		"Suspend":       {"its Pods end", situation{order: suspend, run: run(going)}, stepSuspend, 0},
		"Suspended":     {"and nothing runs, however long", situation{order: suspend, limit: time.Second, run: run(going, suspended)}, stepSuspend, 0},
		"None to begin": {"nor begins", situation{order: suspend}, stepSuspend, 0},
		"Ended before":  {"what has ended has ended", situation{order: suspend, run: run(well)}, stepJudge, 0},
		"Finish":        {"of those that finish, what runs goes on", situation{order: drain, run: run(going)}, stepFollow, 0},
		"Finish paused": {"as does what was suspended before", situation{order: drain, run: run(going, suspended)}, stepResume, 0},
		"None to start": {"what still waits does so until the experiment goes on", situation{order: drain}, stepSuspend, 0},
		"None again":    {"nor is there another try", situation{order: drain, retries: 1, failures: 1, failed: noon.Add(-time.Hour)}, stepSuspend, 0},
		"Resume":        {"it goes on", situation{run: run(going, suspended)}, stepResume, 0},
		"Kill":          {"it is stopped", situation{order: kill, run: run(going)}, stepKill, 0},
		"Kill none":     {"though it has not begun, or the cache does not have its run", situation{order: kill}, stepKill, 0},
		"Kill leaving":  {"a run that someone deletes is not made again", situation{order: kill, run: run(going, leaving)}, stepKill, 0},
		"Kill ended":    {"what has ended has ended", situation{order: kill, run: run(well)}, stepJudge, 0},
		"Kill failed":   {"a failure is not tried again for an experiment that has ended", situation{order: kill, retries: 3, run: run(badly)}, stepJudge, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.s.now = noon
			if got, wait := decide(c.s); got != c.want || wait != c.wait {
				t.Errorf("%s: step %d and a wait of %s, want %d and %s", c.reason, got, wait, c.want, c.wait)
			}
		})
	}
}

// TestDecideProperties holds what must be so of all situations.
func TestDecideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(name string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(t, name)) * time.Second
		}
		s := situation{
			now: noon, order: order(rapid.IntRange(0, 3).Draw(t, "order")),
			retries: rapid.IntRange(0, 3).Draw(t, "retries"), failed: noon.Add(-seconds("failed", 0, 100)), limit: seconds("limit", 0, 5),
		}
		s.failures = rapid.IntRange(0, s.retries).Draw(t, "failures")
		if rapid.Bool().Draw(t, "run") {
			s.run = &runState{
				outcome: rapid.SampledFrom([]trialtemplate.State{trialtemplate.Running, trialtemplate.Succeeded, trialtemplate.Failed}).Draw(t, "outcome"),
				leaving: rapid.Bool().Draw(t, "leaving"), suspended: rapid.Bool().Draw(t, "suspended"),
				attempt: rapid.IntRange(0, s.failures).Draw(t, "attempt"), started: noon.Add(-seconds("started", 0, 10)),
			}
		}
		step, wait := decide(s)
		works := step == stepStart || step == stepFollow || step == stepResume
		switch {
		case wait < 0:
			t.Fatalf("the wait is %s", wait)
		case s.order == drain && step == stepStart:
			t.Fatal("a run begins while the experiment is suspended")
		case s.order > drain && works:
			t.Fatal("a trial goes on that is not to")
		case (step == stepStart) && s.run != nil:
			t.Fatal("a run is made though there is one")
		case step == stepRetry && s.failures >= s.retries:
			t.Fatal("there are more retries than there may be")
		case step == stepJudge && s.run.attempt < s.failures:
			t.Fatal("an earlier run is taken for the last")
		case step == stepJudge && s.run.outcome == trialtemplate.Failed && s.failures < s.retries && s.order != kill:
			t.Fatal("a trial fails that has retries left")
		case step == stepWait && wait == 0 && (s.run == nil || !s.run.leaving):
			t.Fatal("nothing will call again")
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 7: time.Minute, 1_000_000: time.Minute} {
		if got := backoff(failures); got != want {
			t.Errorf("backoff(%d) = %s, want %s", failures, got, want)
		}
	}
}

func TestOrderOf(t *testing.T) {
	t.Parallel()
	ended := func(c v1beta1.ConditionType, reason string) func(*v1beta1.Experiment) {
		return func(e *v1beta1.Experiment) {
			e.Status.Conditions = v1beta1.Conditions{{Type: c, Status: "True", Reason: reason}}
		}
	}
	stops := func(e *v1beta1.Experiment) { e.Spec.StopTrialsAtEnd = true }
	pauses := func(e *v1beta1.Experiment) { e.Spec.Suspend = true }
	wholly := func(e *v1beta1.Experiment) { e.Spec.SuspendPolicy = v1beta1.SuspendTrials }
	type changes []func(*v1beta1.Experiment)
	for name, c := range map[string]struct {
		reason string
		of     changes
		want   order
	}{
		"Plain":      {"trials proceed", nil, proceed},
		"Goal":       {"in Katib they outlive their experiment", changes{ended(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentGoalReached)}, proceed},
		"Stop":       {"unless one asks otherwise", changes{stops, ended(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentGoalReached)}, kill},
		"Stop fails": {"also when it failed", changes{stops, ended(v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed)}, kill},
		"Not yet":    {"only then", changes{stops}, proceed},
		"Late":       {"a time limit is one", changes{ended(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentTimeLimitReached)}, kill},
		"Suspend":    {"trials that run finish", changes{pauses}, drain},
		"Wholly":     {"or not", changes{pauses, wholly}, suspend},
		"Policy":     {"the policy alone suspends nothing", changes{wholly}, proceed},
		"Over":       {"an end goes before a pause", changes{pauses, wholly, ended(v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentGoalReached)}, proceed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &v1beta1.Experiment{}
			for _, change := range c.of {
				change(e)
			}
			if got, _ := orderOf(e); got != c.want {
				t.Errorf("%s: %d, want %d", c.reason, got, c.want)
			}
		})
	}
	if got, _ := orderOf(nil); got != proceed {
		t.Errorf("a trial of nobody gets the order %d", got)
	}
}
