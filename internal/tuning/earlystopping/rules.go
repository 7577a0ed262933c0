// SPDX-License-Identifier: Apache-2.0

package earlystopping

import (
	"errors"
	"strconv"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/optimize/stopping"
)

// Known returns the names of the rules that an experiment may ask for.
func Known() []string {
	var names []string
	for _, rule := range stopping.Known() {
		names = append(names, rule.Name)
	}
	return names
}

// New returns the rule that an experiment asks for, and nil where it asks for
// none. An error wraps [stopping.ErrUnknown] where the library has no rule of
// that name.
func New(spec *v1beta1.EarlyStoppingSpec) (stopping.Rule, error) {
	if spec == nil || spec.AlgorithmName == "" {
		return nil, nil
	}
	settings := make(map[string]string, len(spec.AlgorithmSettings))
	for _, s := range spec.AlgorithmSettings {
		settings[s.Name] = s.Value
	}
	return stopping.New(spec.AlgorithmName, settings)
}

// Check validates an experiment's early stopping.
func Check(spec *v1beta1.EarlyStoppingSpec) error {
	_, err := New(spec)
	return err
}

// ruleFor is New, where an unknown name is no error but nobody's rule here: the
// fixed rules that came with the trial are all there is.
func ruleFor(spec *v1beta1.EarlyStoppingSpec) (stopping.Rule, error) {
	rule, err := New(spec)
	if errors.Is(err, stopping.ErrUnknown) {
		return nil, nil
	}
	return rule, err
}

// Fixed converts a rule to Katib's format for a trial that starts now, as far
// as possible; it may return none. Katib's rules on a trial must all be met, so
// of the limits at several steps only the first can be expressed; and they
// compare the best value of the objective so far.
func Fixed(rule stopping.Rule, curves *stopping.Curves, metric string) []v1beta1.EarlyStoppingRule {
	limiter, ok := rule.(stopping.Limiter)
	if !ok {
		return nil
	}
	limits := limiter.Limits(curves)
	if len(limits) == 0 || !limits[0].Best {
		return nil
	}
	first := limits[0]
	comparison := v1beta1.ComparisonTypeGreater
	if first.Less {
		comparison = v1beta1.ComparisonTypeLess
	}
	return []v1beta1.EarlyStoppingRule{{
		Name: metric, Value: strconv.FormatFloat(first.Value, 'g', -1, 64), Comparison: comparison, StartStep: first.Step,
	}}
}

func directionOf(o *v1beta1.ObjectiveSpec) stopping.Direction {
	if o != nil && o.Type == v1beta1.ObjectiveTypeMaximize {
		return stopping.Maximize
	}
	return stopping.Minimize
}
