// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"maps"

	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// AutoConfig configures which sampler [NewAuto] chooses.
type AutoConfig struct {
	// Modelled is the number of suggestions after which the Gaussian process is
	// no longer used, from 0; beyond that it would take longer than many
	// trials, and the cheaper samplers have enough results to learn from.
	Modelled int
	// Parameters is how many parameters a Gaussian process searches, from 0:
	// among more, too few results say too little about each.
	Parameters int
	// Objectives is how many objectives a Gaussian process searches for the
	// hypervolume, whose cost grows quickly with them.
	Objectives int
	// Memory, from 0 to below 1, is the discount of a sampler's past with
	// each of its suggestions: 0.95 remembers about twenty.
	Memory float64
}

// DefaultAutoConfig returns the configuration of "auto".
func DefaultAutoConfig() AutoConfig {
	return AutoConfig{Modelled: 1000, Parameters: 60, Objectives: 3, Memory: 0.95}
}

func (c AutoConfig) check() error {
	for _, field := range []struct {
		name  string
		value int
	}{{"Modelled", c.Modelled}, {"Parameters", c.Parameters}, {"Objectives", c.Objectives}} {
		if field.value < 0 {
			return fmt.Errorf("field %s is %d: want a number from 0", field.name, field.value)
		}
	}
	if !(c.Memory >= 0 && c.Memory < 1) {
		return fmt.Errorf("field Memory is %v: want a number from 0 to below 1", c.Memory)
	}
	return nil
}

// NewAuto returns the sampler that chooses another for each suggestion, based
// on the space, the budget and the results so far.
//
// One objective is searched by a Gaussian process, CMA-ES and multivariate TPE
// in turns, which learn from each other's results: a Gaussian process where
// there are few enough suggestions and parameters for one, CMA-ES where at
// least two parameters are numbers. Each has its turn in proportion to how
// often its last suggestions were better than all before: where a model finds
// the right region and a descent the last digits, each gets its time.
//
// Several objectives are searched by a Gaussian process, many by NSGA-II.
//
// The label "sampler" of a point names it.
func NewAuto(space *Space, seed uint64, budget Budget, c AutoConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("cannot create automatic sampler: %w", err)
	}
	a := &auto{config: c, seed: seed}
	for _, m := range []struct {
		into *Sampler
		make func() (Sampler, error)
		when bool
	}{
		{&a.gaussian.Sampler, func() (Sampler, error) { return NewGP(space, seed, gaussianWithin(budget)) }, true},
		{&a.strategy.Sampler, func() (Sampler, error) { return NewCMAES(space, seed, DefaultCMAESConfig()) }, countNumbers(space) >= 2},
		{&a.parzen.Sampler, func() (Sampler, error) { return NewTPE(space, seed, DefaultTPEConfig()) }, true},
		{&a.genetic.Sampler, func() (Sampler, error) { return NewNSGA2(space, seed, DefaultNSGA2Config()) }, true},
	} {
		if !m.when {
			continue
		}
		sampler, err := m.make()
		if err != nil {
			return nil, fmt.Errorf("cannot create automatic sampler: %w", err)
		}
		*m.into = sampler
	}
	a.gaussian.name, a.strategy.name, a.parzen.name, a.genetic.name = "bayesianoptimization", "cmaes", "multivariate-tpe", "nsga2"
	return a, nil
}

// countNumbers returns how many parameters are double or int.
func countNumbers(s *Space) (n int) {
	for i := range s.axes {
		if kind := s.axes[i].Kind; kind == KindDouble || kind == KindInt {
			n++
		}
	}
	return n
}

// mustAuto returns the automatic sampler, whose default configuration suits
// every space.
func mustAuto(p Problem) Sampler {
	sampler, err := New("auto", nil, p)
	if err != nil {
		panic(fmt.Sprintf("optimize: %v", err))
	}
	return sampler
}

// gaussianWithin returns the configuration of a Gaussian process that leaves
// most of a small budget to the model.
func gaussianWithin(b Budget) GPConfig {
	c := DefaultGPConfig()
	if b.MaxTrials > 0 {
		c.InitialPoints = min(c.InitialPoints, max(b.MaxTrials/5, 3))
	}
	return c
}

type auto struct {
	config                              AutoConfig
	seed                                uint64
	gaussian, strategy, parzen, genetic choice
}

// choice is a sampler that may be chosen; a nil one does not suit the space.
type choice struct {
	Sampler
	name string
}

// samplerLabel names the sampler of a suggestion.
const samplerLabel = "sampler"

func (a *auto) Sample(ctx context.Context, h *History) (Point, error) {
	m := a.choose(h)
	p, err := m.Sample(ctx, h)
	if err != nil {
		return Point{}, err
	}
	labels := map[string]string{samplerLabel: m.name}
	maps.Copy(labels, p.Labels())
	return p.WithLabels(labels), nil
}

// choose returns the sampler of the next point.
func (a *auto) choose(h *History) choice {
	past := h.Len() + len(h.Known())
	modelled := past < a.config.Modelled && h.space.Len() <= a.config.Parameters
	if n := len(h.directions); n > 1 {
		if n <= a.config.Objectives && modelled {
			return a.gaussian
		}
		return a.genetic
	}
	var choices []choice
	if modelled {
		if len(h.told)+len(h.Known()) < designed {
			return a.gaussian
		}
		choices = append(choices, a.gaussian)
	}
	if a.strategy.Sampler != nil {
		choices = append(choices, a.strategy)
	}
	choices = append(choices, a.parzen)
	return choices[a.draw(h, choices)]
}

// designed is how many results there must be before samplers take turns; the
// points that are pending teach nothing yet.
const designed = 10

// draw returns the index of one of some samplers, at random in proportion to
// the rate at which its last suggestions were better than all before.
func (a *auto) draw(h *History, choices []choice) int {
	successes := a.successes(h)
	sum := 0.0
	for _, m := range choices {
		sum += successes[m.name].rate()
	}
	u := sum * random.New(a.seed, uint64(h.Len())).Float()
	for i, m := range choices {
		if u -= successes[m.name].rate(); u < 0 {
			return i
		}
	}
	return len(choices) - 1
}

// successes counts the suggestions of samplers, the latest for most.
type successes struct{ of, better float64 }

// rate is the part of suggestions that was better than all before; one that
// was never asked has an even chance.
func (s successes) rate() float64 { return (s.better + 0.5) / (s.of + 1) }

// successes returns those of each sampler by name.
func (a *auto) successes(h *History) map[string]successes {
	all := map[string]successes{}
	var best *Trial
	for i := range h.trials {
		t := &h.trials[i]
		if !t.Complete() {
			continue
		}
		name := t.Point.Labels()[samplerLabel]
		s := all[name]
		s.of, s.better = s.of*a.config.Memory+1, s.better*a.config.Memory
		if best == nil || h.compare(*t, *best) < 0 {
			best, s.better = t, s.better+1
		}
		all[name] = s
	}
	return all
}

func autoAlgorithm() maker {
	return maker{
		settings: []string{randomState},
		build: func(_ *settings.Reader, p Problem) (Sampler, error) {
			return NewAuto(p.Space, p.Seed, p.Budget, DefaultAutoConfig())
		},
	}
}
