// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// ReasonEndReached is the reason of a Suggestion's condition Succeeded when its
// algorithm has nothing more to suggest, such as a grid that was walked.
const ReasonEndReached = "SuggestionEndReached"

// reasonExperimentCompleted is the reason of that condition when the experiment
// is over, in Katib's words.
const reasonExperimentCompleted = "Experiment is succeeded"

// Ended reports whether the algorithm has nothing more to suggest.
func Ended(s *v1beta1.Suggestion) bool { return succeededFor(s, ReasonEndReached) }

func succeededFor(s *v1beta1.Suggestion, reason string) bool {
	return s.Status.Conditions.IsTrue(v1beta1.ConditionSucceeded) &&
		s.Status.Conditions.Get(v1beta1.ConditionSucceeded).Reason == reason
}

// action is the next step for a suggestion.
type action int

const (
	rest    action = iota // nothing
	retire                // the experiment is over
	suggest               // to be ready, and to have as many assignments as requested
)

// decide is the heart of the reconciler.
func decide(e *v1beta1.Experiment, s *v1beta1.Suggestion) action {
	over := e.IsCompleted()
	lasting := e.Spec.ResumePolicy == v1beta1.LongRunning
	switch {
	case over && !lasting && !s.IsCompleted():
		return retire
	case over:
		return rest
	case s.IsCompleted() && !succeededFor(s, reasonExperimentCompleted):
		return rest // it failed, or has nothing more
	case ready(s) && s.Status.SuggestionCount >= s.Spec.Requests:
		return rest
	}
	return suggest
}

// ready reports whether the conditions say that suggestions can be asked for.
func ready(s *v1beta1.Suggestion) bool {
	return s.Status.Conditions.IsTrue(v1beta1.ConditionRunning) && !s.IsCompleted()
}

// prepare sets the conditions of a suggestion that is ready. served says that a
// service makes it.
func prepare(status *v1beta1.SuggestionStatus, served bool, now metav1.Time) {
	if status.StartTime == nil {
		status.StartTime = &now
	}
	c := &status.Conditions
	c.Remove(v1beta1.ConditionSucceeded)
	if !c.IsTrue(v1beta1.ConditionCreated) {
		c.Set(now, v1beta1.ConditionCreated, corev1.ConditionTrue, v1beta1.ReasonSuggestionCreated, "Suggestion is created")
	}
	if !served { // else consult says
		c.Set(now, v1beta1.ConditionDeploymentReady, corev1.ConditionTrue, v1beta1.ReasonSuggestionDeploymentReady,
			"The controller makes suggestions itself, without a Deployment")
	}
	c.Set(now, v1beta1.ConditionRunning, corev1.ConditionTrue, v1beta1.ReasonSuggestionRunning, "Suggestion is running")
	status.CompletionTime = nil
}

// complete sets the conditions of a suggestion that ends.
func complete(status *v1beta1.SuggestionStatus, t v1beta1.ConditionType, reason, message string, now metav1.Time) {
	status.Conditions.Complete(now, t, reason, message)
	status.CompletionTime = &now
}

// retired is the message of a suggestion whose experiment is over, by policy.
func retired(policy v1beta1.ResumePolicyType) string {
	if policy == v1beta1.FromVolume {
		return "Suggestion is succeeded, suggestion volume is not deleted, can be restarted"
	}
	return "Suggestion is succeeded, can't be restarted"
}
