// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
)

// AutoConfig says when [NewAuto] chooses which sampler.
type AutoConfig struct {
	// Modelled is how many suggestions a Gaussian process makes, from 0; beyond
	// that one would take longer than many a trial, and the cheaper samplers
	// have enough results to learn from.
	Modelled int
	// Parameters is how many parameters a Gaussian process searches, from 0:
	// among more, too few results say too little about each.
	Parameters int
	// Objectives is how many objectives a Gaussian process searches for the
	// hypervolume, whose cost grows quickly with them.
	Objectives int
}

// DefaultAutoConfig returns the configuration of "auto".
func DefaultAutoConfig() AutoConfig {
	return AutoConfig{Modelled: 1000, Parameters: 60, Objectives: 3}
}

func (c AutoConfig) check() error {
	for _, field := range []struct {
		name  string
		value int
	}{{"Modelled", c.Modelled}, {"Parameters", c.Parameters}, {"Objectives", c.Objectives}} {
		if field.value < 0 {
			return fmt.Errorf("%s is %d: want a number from 0", field.name, field.value)
		}
	}
	return nil
}

// NewAuto returns the sampler that chooses another for each suggestion, by the
// space, the budget and what is known so far:
//
//   - a Gaussian process while there are few enough suggestions, parameters and
//     objectives for one;
//   - multivariate TPE beyond that, and NSGA-II for more objectives than a
//     Gaussian process searches.
//
// The label "sampler" of a point says which it was.
func NewAuto(space *Space, seed uint64, budget Budget, c AutoConfig) (Sampler, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("cannot make automatic sampler: %w", err)
	}
	a := &auto{config: c}
	var err error
	if a.gaussian, err = NewGP(space, seed, gaussianWithin(budget)); err != nil {
		return nil, err
	}
	if a.parzen, err = NewTPE(space, seed, DefaultTPEConfig()); err != nil {
		return nil, err
	}
	if a.genetic, err = NewNSGA2(space, seed, DefaultNSGA2Config()); err != nil {
		return nil, err
	}
	return a, nil
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
	config                    AutoConfig
	gaussian, parzen, genetic Sampler
}

func (a *auto) Sample(ctx context.Context, h *History) (Point, error) {
	name, sampler := a.choose(h)
	p, err := sampler.Sample(ctx, h)
	if err != nil {
		return Point{}, err
	}
	labels := map[string]string{"sampler": name}
	for key, value := range p.Labels() {
		labels[key] = value
	}
	return p.WithLabels(labels), nil
}

// choose returns the sampler of the next point and its name.
func (a *auto) choose(h *History) (string, Sampler) {
	switch {
	case len(h.directions) > a.config.Objectives:
		return "nsga2", a.genetic
	case h.Len()+len(h.Known()) >= a.config.Modelled || h.space.Len() > a.config.Parameters:
		return "multivariate-tpe", a.parzen
	}
	return "bayesianoptimization", a.gaussian
}

// mustAuto returns the automatic sampler, whose default configuration suits
// every space.
func mustAuto(space *Space, seed uint64, budget Budget) Sampler {
	sampler, err := NewAuto(space, seed, budget, DefaultAutoConfig())
	if err != nil {
		panic(fmt.Sprintf("optimize: %v", err))
	}
	return sampler
}

func autoAlgorithm() maker {
	return maker{
		settings: []string{randomState},
		build: func(_ *settings, p Problem) (Sampler, error) {
			return NewAuto(p.Space, p.Seed, p.Budget, DefaultAutoConfig())
		},
	}
}
