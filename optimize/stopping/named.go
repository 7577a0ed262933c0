// SPDX-License-Identifier: Apache-2.0

package stopping

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrUnknown is wrapped by errors about a name that no rule has.
var ErrUnknown = errors.New("unknown early stopping rule")

// Named is a rule that can be asked for by name.
type Named struct {
	// Name is the rule's; medianstop is Katib's.
	Name string
	// Settings are the names of its settings, sorted.
	Settings []string
}

// Known returns the rules by name.
func Known() []Named {
	makers := makers()
	var known []Named
	for _, name := range slices.Sorted(maps.Keys(makers)) {
		known = append(known, Named{name, slices.Sorted(slices.Values(makers[name].settings))})
	}
	return known
}

// New returns a rule by name. Settings that are left out have the defaults of
// the rule's config.
//
//   - medianstop ([MedianConfig]): min_trials_required, start_step.
//   - percentile ([PercentileConfig]): percentile, n_startup_trials,
//     n_warmup_steps, interval_steps, n_min_trials.
//   - successivehalving ([HalvingConfig]): min_resource (a number or auto),
//     reduction_factor, min_early_stopping_rate.
//   - hyperband ([HyperbandConfig]): min_resource, max_resource (a number or
//     auto), reduction_factor.
//   - threshold ([ThresholdConfig]): lower, upper, of which one at least is
//     wanted, n_warmup_steps, interval_steps.
//   - patience ([PatienceConfig]): patience, which is required, min_delta, and
//     rule, the name of a rule that must agree, whose settings are given too.
//   - wilcoxon ([WilcoxonConfig]): p_threshold, n_startup_steps.
//   - curvefitting ([FittingConfig]): probability, start_step, max_step (a
//     number or auto), min_trials_required.
//
// An error wraps [ErrUnknown] where the name is the cause.
func New(name string, settings map[string]string) (Rule, error) {
	makers := makers()
	m, ok := makers[name]
	if !ok {
		return nil, fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, strings.Join(slices.Sorted(maps.Keys(makers)), ", "))
	}
	known := m.settings
	if name == "patience" {
		known = slices.Concat(known, makers[settings["rule"]].settings)
	}
	s := &reader{settings: settings}
	s.checkNames(known)
	rule, err := m.build(s)
	if err := errors.Join(append(s.problems, err)...); err != nil {
		return nil, fmt.Errorf("early stopping rule %s: %w", name, err)
	}
	return rule, nil
}

// maker is what New knows of a rule. Its build is called with settings whose
// problems, if any, take precedence over what it returns.
type maker struct {
	settings []string
	build    func(s *reader) (Rule, error)
}

func makers() map[string]maker {
	return map[string]maker{
		"medianstop": {[]string{"min_trials_required", "start_step"}, func(s *reader) (Rule, error) {
			m := DefaultMedianConfig()
			s.int("min_trials_required", &m.MinTrials)
			s.int("start_step", &m.StartStep)
			return NewMedian(m)
		}},
		"percentile": {[]string{"percentile", "n_startup_trials", "n_warmup_steps", "interval_steps", "n_min_trials"}, func(s *reader) (Rule, error) {
			p := DefaultPercentileConfig()
			s.float("percentile", &p.Percentile)
			s.int("n_startup_trials", &p.StartupTrials)
			s.int("n_warmup_steps", &p.WarmupSteps)
			s.int("interval_steps", &p.IntervalSteps)
			s.int("n_min_trials", &p.MinTrials)
			return NewPercentile(p)
		}},
		"successivehalving": {[]string{"min_resource", "reduction_factor", "min_early_stopping_rate"}, func(s *reader) (Rule, error) {
			h := DefaultHalvingConfig()
			s.intOrAuto("min_resource", &h.MinResource)
			s.int("reduction_factor", &h.Factor)
			s.int("min_early_stopping_rate", &h.EarlyStoppingRate)
			return NewHalving(h)
		}},
		"hyperband": {[]string{"min_resource", "max_resource", "reduction_factor"}, func(s *reader) (Rule, error) {
			h := DefaultHyperbandConfig()
			s.int("min_resource", &h.MinResource)
			s.intOrAuto("max_resource", &h.MaxResource)
			s.int("reduction_factor", &h.Factor)
			return NewHyperband(h)
		}},
		"threshold": {[]string{"lower", "upper", "n_warmup_steps", "interval_steps"}, func(s *reader) (Rule, error) {
			t := DefaultThresholdConfig()
			s.float("lower", &t.Lower)
			s.float("upper", &t.Upper)
			s.int("n_warmup_steps", &t.WarmupSteps)
			s.int("interval_steps", &t.IntervalSteps)
			return NewThreshold(t)
		}},
		"patience": {[]string{"patience", "min_delta", "rule"}, buildPatience},
		"wilcoxon": {[]string{"p_threshold", "n_startup_steps"}, func(s *reader) (Rule, error) {
			w := DefaultWilcoxonConfig()
			s.float("p_threshold", &w.PThreshold)
			s.int("n_startup_steps", &w.StartupSteps)
			return NewWilcoxon(w)
		}},
		"curvefitting": {[]string{"probability", "start_step", "max_step", "min_trials_required"}, func(s *reader) (Rule, error) {
			f := DefaultFittingConfig()
			s.float("probability", &f.Probability)
			s.int("start_step", &f.StartStep)
			s.intOrAuto("max_step", &f.MaxStep)
			s.int("min_trials_required", &f.MinTrials)
			return NewFitting(f)
		}},
	}
}

func buildPatience(s *reader) (Rule, error) {
	var p PatienceConfig
	s.require("patience")
	s.int("patience", &p.Patience)
	s.float("min_delta", &p.MinDelta)
	if inner, ok := s.settings["rule"]; ok {
		m, known := makers()[inner]
		if !known || inner == "patience" {
			return nil, fmt.Errorf("setting rule is %q: want the name of another rule", inner)
		}
		rule, err := m.build(s)
		if err != nil {
			return nil, err
		}
		p.Rule = rule
	}
	return NewPatience(p)
}
