// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"context"
	"errors"
	"maps"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/internal/tuning/trialname"
	"diwan.dev/diwan/optimize"
)

// LabelIndex is the label with a suggestion's number, from 0, if the trial's
// name does not determine it.
const LabelIndex = "diwan.dev/index"

// Answer makes more suggestions for an experiment, using only what is known of
// the earlier ones: history has their trials by index, nil for unknown ones.
// They are the same as the reconciler's for the same history and seed. It also
// returns the settings for the next request: the seed, if the experiment has
// none. There are fewer suggestions if the search is exhausted. An error says
// what is wrong with the experiment.
func Answer(ctx context.Context, e *v1beta1.Experiment, history []*v1beta1.Trial, more int) ([]v1beta1.TrialAssignment, []v1beta1.AlgorithmSetting, error) {
	s, byName := &v1beta1.Suggestion{}, map[string]*v1beta1.Trial{}
	s.Spec.Algorithm = e.Spec.Algorithm
	for i, t := range history {
		a := v1beta1.TrialAssignment{Name: trialname.Of(e.Name, e.UID, i)}
		if t != nil {
			t = t.DeepCopy()
			maps.DeleteFunc(t.Spec.Labels, func(label, _ string) bool { return label == LabelIndex })
			a.Name = t.Name
			byName[t.Name] = t
		}
		s.Status.Suggestions = append(s.Status.Suggestions, a)
	}
	s.Status.SuggestionCount = int32(len(history))
	if e.Spec.Algorithm != nil {
		s.Status.AlgorithmSettings = seedFor(e.UID, e.Spec.Algorithm.AlgorithmName, searchspace.Settings(e.Spec.Algorithm.AlgorithmSettings))
	}
	trial := func(name string) *v1beta1.Trial { return byName[name] }
	x, err := resume(e, s, trial, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := x.learn(trial); err != nil {
		return nil, nil, err
	}
	err = x.extend(ctx, &s.Status, int32(len(history)+more), nil)
	if errors.Is(err, optimize.ErrExhausted) {
		err = nil
	}
	return s.Status.Suggestions[len(history):], s.Status.AlgorithmSettings, err
}
