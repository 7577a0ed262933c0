// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"time"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// situation is the input of the decision about an unfinished trial that is not
// being stopped.
type situation struct {
	now   time.Time
	order order
	// failures is how many runs failed so far, of at most retries retried
	// ones; failed is when the last one did.
	failures, retries int
	failed            time.Time
	// limit bounds one run, 0 for no bound.
	limit time.Duration
	// run is the run object, nil while there is none.
	run *runState
}

// runState is what counts of a run object.
type runState struct {
	outcome trialtemplate.State
	leaving bool // it is being deleted
	attempt int  // how many runs failed before it
	// suspended is set while it is suspended for the trial's experiment.
	suspended bool
	// started is when it began to work, zero while it has not.
	started time.Time
}

// step is what to do next.
type step int

const (
	stepWait    step = iota // for a change
	stepStart               // create the run object
	stepFollow              // it is running: show its progress
	stepJudge               // it has ended, and the trial with it
	stepRetry               // it has failed and is to be retried
	stepClear               // remove the run object of a run that failed
	stepKill                // stop the trial, as its experiment has ended
	stepExpire              // stop the trial, as its run takes too long
	stepSuspend             // terminate the run's Pods until the experiment resumes
	stepResume              // resume a suspended run
)

// decide is the heart of the reconciler. With the step comes how long to wait
// before deciding again though nothing changes, 0 forever.
func decide(s situation) (step, time.Duration) {
	if s.run == nil {
		return s.begin()
	}
	switch run := s.run; {
	case run.leaving && s.order != kill:
		return stepWait, 0 // it is made again when it is gone
	case run.attempt < s.failures && !run.leaving:
		return stepClear, 0
	case run.outcome == trialtemplate.Succeeded && !run.leaving:
		return stepJudge, 0
	case run.outcome == trialtemplate.Failed && !run.leaving && (s.failures >= s.retries || s.order == kill):
		return stepJudge, 0
	case s.order == kill:
		return stepKill, 0
	case run.outcome == trialtemplate.Failed:
		return stepRetry, 0
	case s.order == suspend:
		return stepSuspend, 0
	case run.suspended:
		return stepResume, 0
	}
	left := s.left()
	if s.limit > 0 && left <= 0 {
		return stepExpire, 0
	}
	return stepFollow, left
}

// begin decides on a trial that has no run object.
func (s situation) begin() (step, time.Duration) {
	switch pause := s.failed.Add(backoff(s.failures)).Sub(s.now); {
	case s.order == kill:
		return stepKill, 0
	case s.order == drain || s.order == suspend:
		return stepSuspend, 0
	case s.failures > 0 && pause > 0:
		return stepWait, pause
	}
	return stepStart, 0
}

// left is the run's remaining time, 0 if unlimited or not started.
func (s situation) left() time.Duration {
	if s.limit == 0 || s.run.started.IsZero() {
		return max(0, s.limit)
	}
	return s.limit - s.now.Sub(s.run.started)
}

// The backoff before another run, which doubles each time, within bounds. The
// cause of the failure may be transient.
const (
	backoffFirst = time.Second
	backoffMost  = time.Minute
)

// backoff is the wait after so many runs that failed.
func backoff(failures int) time.Duration {
	wait := backoffFirst
	for ; failures > 1 && wait < backoffMost; failures-- {
		wait *= 2
	}
	return min(wait, backoffMost)
}

// order is what an experiment wants for its unfinished trials.
type order int

const (
	proceed order = iota
	drain         // running trials finish, none starts
	suspend       // nothing runs
	kill
)

// orderOf returns an experiment's order, with the reason if it is to kill. A
// trial without an experiment proceeds.
func orderOf(e *v1beta1.Experiment) (order, string) {
	if e == nil {
		return proceed, ""
	}
	for _, t := range []v1beta1.ConditionType{v1beta1.ConditionSucceeded, v1beta1.ConditionFailed} {
		if c := e.Status.Conditions.Get(t); e.Status.Conditions.IsTrue(t) {
			if e.Spec.StopTrialsAtEnd || c.Reason == v1beta1.ReasonExperimentTimeLimitReached {
				return kill, fmt.Sprintf("the experiment has ended, for the reason %s", c.Reason)
			}
			return proceed, ""
		}
	}
	switch {
	case !e.Spec.Suspend:
		return proceed, ""
	case e.Spec.SuspendPolicy == v1beta1.SuspendTrials:
		return suspend, ""
	}
	return drain, ""
}
