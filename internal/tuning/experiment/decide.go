// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/suggestion"
)

// defaultParallel is used where defaulting did not run.
const defaultParallel = 3

// situation is all that decide looks at. Nothing in it is changed.
type situation struct {
	now        time.Time
	experiment *v1beta1.Experiment
	trials     tally
	// suggestion is nil while there is none.
	suggestion *v1beta1.Suggestion
	// waiting are the places, in suggestion.Status.Suggestions, of those that
	// have no trial.
	waiting []int
}

// plan is what should change.
type plan struct {
	// verdict is the state that the experiment enters, nil to stay.
	verdict *verdict
	// requests is how many suggestions to ask for in all, 0 to leave it.
	requests int32
	// create are the places, in suggestion.Status.Suggestions, of those that
	// become trials.
	create []int
	// end is how many of the newest active trials to delete.
	end int
	// wake is when to decide again though nothing changes, 0 for never.
	wake time.Duration
}

// verdict is a condition to set.
type verdict struct {
	condition       v1beta1.ConditionType
	reason, message string
}

// ends reports whether the plan ends the experiment, or begins it again, and
// there is nothing else in it.
func (p plan) ends() bool {
	return p.verdict != nil && p.verdict.condition != v1beta1.ConditionRunning && p.verdict.condition != v1beta1.ConditionSuspended
}

// decide is the heart of the reconciler.
func decide(s situation) plan {
	if v := malformed(&s.experiment.Spec); v != nil && !s.experiment.IsCompleted() {
		return plan{verdict: v}
	}
	if s.experiment.IsCompleted() {
		return plan{verdict: s.restart()}
	}
	if v := s.finish(); v != nil {
		return plan{verdict: v}
	}
	p := s.grow()
	p.verdict = s.course()
	if s.experiment.Spec.Suspend {
		p.create, p.requests = nil, 0
	} else if limit, limited := s.timeLimit(); limited {
		p.wake = limit - s.experiment.ActiveTime(s.now)
	}
	return p
}

// course returns the verdict on an experiment that continues, or is to be
// suspended or resumed; nil if it already says so.
func (s situation) course() *verdict {
	is := s.experiment.Status.Conditions.IsTrue
	switch suspend := s.experiment.Spec.Suspend; {
	case suspend && !is(v1beta1.ConditionSuspended):
		return &verdict{v1beta1.ConditionSuspended, v1beta1.ReasonExperimentSuspended, "Experiment is suspended: no more trials are created"}
	case !suspend && (!is(v1beta1.ConditionRunning) || is(v1beta1.ConditionSuspended)):
		return runs()
	}
	return nil
}

// runs returns the verdict on a running experiment.
func runs() *verdict {
	return &verdict{v1beta1.ConditionRunning, v1beta1.ReasonExperimentRunning, "Experiment is running"}
}

// lacksRoom reports whether the experiment's status says that a quota keeps
// it from creating more.
func (s situation) lacksRoom() bool {
	c := s.experiment.Status.Conditions.Get(v1beta1.ConditionRunning)
	return c != nil && c.Reason == v1beta1.ReasonExperimentQuotaExceeded
}

// malformed is the verdict on a spec that admission would have refused.
func malformed(spec *v1beta1.ExperimentSpec) *verdict {
	missing := ""
	switch {
	case spec.Objective == nil:
		missing = "spec.objective"
	case spec.Algorithm == nil:
		missing = "spec.algorithm"
	case spec.TrialTemplate == nil:
		missing = "spec.trialTemplate"
	default:
		return nil
	}
	return &verdict{v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed,
		fmt.Sprintf("Experiment has failed because %s is missing", missing)}
}

// restart returns the verdict on a completed experiment: it resumes if its
// policy allows it and its budget was raised.
func (s situation) restart() *verdict {
	limit, limited := s.limit()
	more := !limited || (s.trials.completed() < limit && (len(s.waiting) > 0 || s.made() < limit))
	if !s.experiment.IsRestartable() || !more {
		return nil
	}
	return &verdict{v1beta1.ConditionRestarting, v1beta1.ReasonExperimentRestarting, "Experiment is restarted"}
}

// finish returns the verdict that ends the experiment, nil while it
// continues.
func (s situation) finish() *verdict {
	spec, t := &s.experiment.Spec, &s.trials
	limit, limited := s.limit()
	idle := len(s.waiting) == 0 && t.active()+t.ending == 0
	spent := limited && s.made() >= limit && idle
	failed := t.failures()
	switch {
	case t.goal:
		return &verdict{v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentGoalReached,
			"Experiment has succeeded because Objective goal has reached"}
	case spec.MaxFailedTrialCount != nil && failed > 0 && failed >= int(*spec.MaxFailedTrialCount):
		return &verdict{v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed,
			"Experiment has failed because max failed count has reached"}
	case limited && t.completed() >= limit, spent:
		return &verdict{v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached,
			"Experiment has succeeded because max trial count has reached"}
	case s.overdue():
		return s.late()
	case s.suggestion == nil:
		return nil
	}
	conditions := s.suggestion.Status.Conditions
	if c := conditions.Get(v1beta1.ConditionFailed); c != nil && conditions.IsTrue(v1beta1.ConditionFailed) {
		return &verdict{v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed, "Suggestion has failed: " + c.Message}
	}
	if suggestion.Ended(s.suggestion) && idle {
		if t.barren() {
			return &verdict{v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed,
				"Experiment has failed because suggestion service has reached the end and no trial has succeeded"}
		}
		return &verdict{v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentSuggestionEndReached,
			"Experiment has succeeded because suggestion service has reached the end"}
	}
	return nil
}

// timeLimit returns the experiment's remaining time, false if unlimited.
func (s situation) timeLimit() (time.Duration, bool) {
	if s.experiment.Spec.TimeLimitSeconds == nil {
		return 0, false
	}
	return time.Duration(*s.experiment.Spec.TimeLimitSeconds) * time.Second, true
}

// overdue reports whether the experiment's time is up.
func (s situation) overdue() bool {
	limit, limited := s.timeLimit()
	return limited && s.experiment.ActiveTime(s.now) >= limit
}

// late is the verdict on an experiment whose time is up: it has succeeded if it
// found something.
func (s situation) late() *verdict {
	limit, _ := s.timeLimit()
	if s.trials.best == nil {
		return &verdict{v1beta1.ConditionFailed, v1beta1.ReasonExperimentTimeLimitReached,
			fmt.Sprintf("Experiment has failed because no trial had a result when its time limit of %s was reached", limit)}
	}
	return &verdict{v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentTimeLimitReached,
		fmt.Sprintf("Experiment has succeeded because its time limit of %s was reached", limit)}
}

// grow keeps as many trials active as the spec allows. Terminating trials
// occupy their slot until they are gone, and get it back afterwards.
func (s situation) grow() plan {
	parallel := s.parallel()
	held := s.trials.active() + s.trials.ending
	if excess := s.trials.active() - parallel; excess > 0 {
		return plan{end: excess}
	}
	room := parallel - held - s.trials.awaits
	limit, limited := s.limit()
	if limited {
		room = min(room, limit-s.trials.completed()-held)
	}
	if room <= 0 {
		return plan{}
	}
	p := plan{create: s.waiting[:min(room, len(s.waiting))]}
	asked, made := s.asked(), s.made()
	lacking := room - len(p.create) - (asked - made)
	if lacking <= 0 || (s.suggestion != nil && s.suggestion.IsCompleted()) {
		return p
	}
	want := asked + lacking
	if limited {
		want = min(want, limit)
	}
	if want > asked {
		p.requests = int32(want)
	}
	return p
}

// parallel is how many trials may be active.
func (s situation) parallel() int {
	return int(ptr.Deref(s.experiment.Spec.ParallelTrialCount, defaultParallel))
}

// limit is maxTrialCount, false without one.
func (s situation) limit() (int, bool) {
	if s.experiment.Spec.MaxTrialCount == nil {
		return 0, false
	}
	return int(*s.experiment.Spec.MaxTrialCount), true
}

// asked and made are how many suggestions were asked for and made so far.
func (s situation) asked() int {
	if s.suggestion == nil {
		return 0
	}
	return max(int(s.suggestion.Spec.Requests), s.made())
}

func (s situation) made() int {
	if s.suggestion == nil {
		return 0
	}
	return int(s.suggestion.Status.SuggestionCount)
}
