// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/internal/tuning/trialname"
	"diwan.dev/diwan/optimize"
)

// outside reports whether an external service provides suggestions or early
// stopping rules.
func outside(a *v1beta1.AlgorithmSpec, stopping *v1beta1.EarlyStoppingSpec) bool {
	return searchesOutside(a) || stopsOutside(stopping)
}

// searchesOutside reports whether the library does not have an algorithm.
func searchesOutside(a *v1beta1.AlgorithmSpec) bool {
	return a != nil && !slices.ContainsFunc(optimize.Known(), func(k optimize.Algorithm) bool { return k.Name == a.AlgorithmName })
}

// stopsOutside reports whether the library does not have an early stopping rule.
func stopsOutside(spec *v1beta1.EarlyStoppingSpec) bool {
	return spec != nil && spec.AlgorithmName != "" && !slices.Contains(earlystopping.Known(), spec.AlgorithmName)
}

// unanswered says that a service did not answer. The status shows it, and it is
// asked again.
type unanswered struct{ error }

// consult brings the status of s, whose algorithm is a service's, up to what is
// requested. ready reports that the service has accepted the experiment.
//
// The service's response is stored before anything is created from it. If it
// could not be stored, it is requested again.
func (r *Reconciler) consult(ctx context.Context, e *v1beta1.Experiment, s *v1beta1.Suggestion, ready bool, now metav1.Time) error {
	at, err := r.places(ctx, s)
	if err == nil && !ready {
		err = r.validate(ctx, at, e, s)
	}
	if err == nil && s.Status.SuggestionCount < s.Spec.Requests {
		err = r.ask(ctx, at, e, s, now)
	}
	switch {
	case errors.Is(err, algorithm.ErrWrong), errors.Is(err, algorithm.ErrUnknown) && !ready:
		complete(&s.Status, v1beta1.ConditionFailed, v1beta1.ReasonSuggestionFailed, "Validation failed: "+err.Error(), now)
		return nil
	case err != nil:
		if c := s.Status.Conditions.Get(v1beta1.ConditionDeploymentReady); c != nil && c.Message != err.Error() {
			s.Status.Conditions.Remove(v1beta1.ConditionDeploymentReady) // so that the message is the newest
		}
		s.Status.Conditions.Set(now, v1beta1.ConditionDeploymentReady, corev1.ConditionFalse, v1beta1.ReasonSuggestionDeploymentNotReady, err.Error())
		if !ready {
			s.Status.Conditions.Remove(v1beta1.ConditionRunning)
		}
		if errors.As(err, &starting{}) {
			return nil // the watch of Deployments calls again
		}
		return unanswered{err}
	}
	s.Status.Conditions.Set(now, v1beta1.ConditionDeploymentReady, corev1.ConditionTrue, v1beta1.ReasonSuggestionDeploymentReady, "Deployment is ready")
	return nil
}

// validate asks the services to validate the experiment.
func (r *Reconciler) validate(ctx context.Context, at places, e *v1beta1.Experiment, s *v1beta1.Suggestion) error {
	if at.search != "" {
		if err := r.Client.Validate(ctx, at.search, algorithm.Experiment(e, nil)); err != nil {
			return err
		}
	}
	if at.stopping != "" {
		return r.Client.ValidateStopping(ctx, at.stopping, s.Spec.EarlyStopping)
	}
	return nil
}

// ask requests the missing suggestions from the services.
func (r *Reconciler) ask(ctx context.Context, at places, e *v1beta1.Experiment, s *v1beta1.Suggestion, now metav1.Time) error {
	trials, err := r.trialsOf(ctx, e, s)
	if err != nil {
		return err
	}
	about, known := algorithm.Experiment(e, s.Status.AlgorithmSettings), algorithm.Trials(trials)
	rules, err := r.rules(ctx, at, e, about, known)
	if err != nil {
		return err
	}
	if at.search == "" {
		return r.extend(ctx, e, s, rules, now)
	}
	missing := s.Spec.Requests - s.Status.SuggestionCount
	reply, err := r.Client.Suggest(ctx, at.search, &manager.GetSuggestionsRequest{
		Experiment: about, Trials: known, CurrentRequestNumber: missing, TotalRequestNumber: s.Spec.Requests,
	})
	if err != nil {
		return err
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(trials, func(t *v1beta1.Trial) bool { return t.Name == name })
	}
	name := func(i int) string { return trialname.Of(e.Name, e.UID, int(s.Status.SuggestionCount)+i) }
	made, err := algorithm.Assignments(e, reply, int(missing), name, taken)
	if err != nil {
		return err
	}
	for i := range made {
		made[i].EarlyStoppingRules = append(made[i].EarlyStoppingRules, rules...)
	}
	s.Status.Suggestions = append(s.Status.Suggestions, made...)
	s.Status.SuggestionCount += int32(len(made))
	s.Status.AlgorithmSettings = algorithm.Merge(s.Status.AlgorithmSettings, algorithm.SettingsOf(reply.GetAlgorithm()))
	if len(made) == 0 {
		complete(&s.Status, v1beta1.ConditionSucceeded, ReasonEndReached,
			fmt.Sprintf("The algorithm service has no more suggestions after %d", s.Status.SuggestionCount), now)
	}
	r.prune(ctx, s, func(string) bool { return false })
	return nil
}

// rules returns the early stopping rules for the next trials.
func (r *Reconciler) rules(ctx context.Context, at places, e *v1beta1.Experiment, about *manager.Experiment, trials []*manager.Trial) ([]v1beta1.EarlyStoppingRule, error) {
	if at.stopping == "" {
		return r.Stopping.Fixed(ctx, e)
	}
	return r.Client.Rules(ctx, at.stopping, &manager.GetEarlyStoppingRulesRequest{
		Experiment: about, Trials: trials, DbManagerAddress: algorithm.DBManagerAddress(r.Services.Namespace),
	})
}

// trialsOf returns the trials of an experiment in the order of their
// suggestions, also those that are yet to be created.
func (r *Reconciler) trialsOf(ctx context.Context, e *v1beta1.Experiment, s *v1beta1.Suggestion) ([]*v1beta1.Trial, error) {
	var list v1beta1.TrialList
	err := r.client.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1beta1.LabelExperiment: e.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("cannot list the trials of %s/%s: %w", e.Namespace, e.Name, err)
	}
	var trials []*v1beta1.Trial
	there := map[string]bool{}
	for i := range list.Items {
		if t := &list.Items[i]; metav1.IsControlledBy(t, e) {
			trials = append(trials, t)
			there[t.Name] = true
		}
	}
	slices.SortStableFunc(trials, func(a, b *v1beta1.Trial) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, a := range s.Status.Suggestions {
		if !there[a.Name] {
			t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}
			t.Spec.Objective, t.Spec.ParameterAssignments, t.Spec.Labels = e.Spec.Objective, a.ParameterAssignments, a.Labels
			trials = append(trials, t)
		}
	}
	return trials, nil
}

// number returns the number of a trial's suggestion, 0 for one named by a
// service.
func number(t *v1beta1.Trial) int {
	i, _ := strconv.Atoi(t.Annotations[v1beta1.AnnotationTrialIndex])
	return i
}
