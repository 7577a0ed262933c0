// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"

	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/controller/suggestion"
)

// defaultParallel is used where defaulting did not run.
const defaultParallel = 3

// situation is all that decide looks at. Nothing in it is changed.
type situation struct {
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
}

// verdict is a condition to set.
type verdict struct {
	condition       v1beta1.ConditionType
	reason, message string
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
	if c := s.experiment.Status.Conditions; !c.IsTrue(v1beta1.ConditionRunning) {
		p.verdict = &verdict{v1beta1.ConditionRunning, v1beta1.ReasonExperimentRunning, "Experiment is running"}
	}
	return p
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

// restart is the verdict on a completed experiment: it goes on if its policy
// lets it and its budget was raised.
func (s situation) restart() *verdict {
	limit, limited := s.limit()
	more := !limited || (s.trials.completed() < limit && (len(s.waiting) > 0 || s.made() < limit))
	if !s.experiment.IsRestartable() || !more {
		return nil
	}
	return &verdict{v1beta1.ConditionRestarting, v1beta1.ReasonExperimentRestarting, "Experiment is restarted"}
}

// finish is the verdict that ends the experiment, nil while it goes on.
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
	case s.suggestion == nil:
		return nil
	}
	conditions := s.suggestion.Status.Conditions
	if c := conditions.Get(v1beta1.ConditionFailed); c != nil && conditions.IsTrue(v1beta1.ConditionFailed) {
		return &verdict{v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed, "Suggestion has failed: " + c.Message}
	}
	if suggestion.Ended(s.suggestion) && idle {
		return &verdict{v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentSuggestionEndReached,
			"Experiment has succeeded because suggestion service has reached the end"}
	}
	return nil
}

// grow keeps as many trials active as the spec allows. Trials that are being
// deleted hold their place until they are gone, and get it back afterwards.
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
