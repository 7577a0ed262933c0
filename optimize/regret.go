// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/regret"
	"diwan.dev/diwan/optimize/internal/surrogate"
)

// RegretConfig configures when a search has found everything worth finding.
type RegretConfig struct {
	// MinTrials is how many complete trials there have to be, from 2.
	MinTrials int
	// Part is that of the trials, the best of them, whose values the model
	// tells apart, in (0, 1]. The others count as bad as the worst of these:
	// how bad they are says little about the best.
	Part float64
	// Risk is the chance, in (0, 1), that the bound may be wrong with.
	Risk float64
	// Worth is the smallest worthwhile improvement, in the unit of the
	// objective, such as the standard deviation of a cross validation. 0
	// means the noise that the model estimates, or a hundredth of the
	// search's gain over the median of its first MinTrials if that is more.
	Worth float64
	// Seed decides where the model is searched.
	Seed uint64
}

// DefaultRegretConfig returns a risk of 0.1, as the paper has it, and the better
// half of at least 20 trials.
func DefaultRegretConfig() RegretConfig {
	return RegretConfig{MinTrials: 20, Part: 0.5, Risk: 0.1}
}

func (c RegretConfig) check() error {
	switch {
	case c.MinTrials < 2:
		return fmt.Errorf("field MinTrials is %d: want an integer from 2", c.MinTrials)
	case !(c.Part > 0 && c.Part <= 1):
		return fmt.Errorf("field Part is %v: want a number greater than 0 and at most 1", c.Part)
	case !(c.Risk > 0 && c.Risk < 1):
		return fmt.Errorf("field Risk is %v: want a number between 0 and 1", c.Risk)
	case !(c.Worth >= 0) || math.IsInf(c.Worth, 1):
		return fmt.Errorf("field Worth is %v: want a finite number from 0", c.Worth)
	}
	return nil
}

// Regret is how much a search may still miss.
type Regret struct {
	// Bound is by how much the optimum may be better than the best trial, in
	// the unit of the objective. It is +Inf where there are too few trials to
	// say.
	Bound float64
	// Worth is the least improvement that counts, in the same unit.
	Worth float64
	// Stop reports that the possible gain is not worthwhile: the search may
	// end.
	Stop bool
}

// RegretBound returns a bound on how much better than the best trial the
// optimum of a search of one objective may be (Makarova et al., "Automatic
// termination for hyperparameter optimization", 2022): the least upper
// confidence bound of a trial less the least lower one of any point, of a
// Gaussian process of the best trials. It is a pure function.
func RegretBound(h *History, c RegretConfig) (Regret, error) {
	if err := c.check(); err != nil {
		return Regret{}, fmt.Errorf("cannot bound regret: %w", err)
	}
	if len(h.directions) != 1 {
		return Regret{}, errors.New("cannot bound regret: want one objective")
	}
	var points [][]float64
	var losses []float64
	for _, t := range slices.Concat(h.known, h.trials) {
		if t.Complete() && t.Feasible() && !math.IsInf(t.Value(), 0) {
			points, losses = append(points, h.space.Unit(t.Point)), append(losses, h.Direction().loss(t.Value()))
		}
	}
	if len(losses) < c.MinTrials {
		return Regret{Bound: math.Inf(1), Worth: c.Worth}, nil
	}
	b := regret.NewBounds(newFeatures(h.space), points, losses, c.Part, c.Risk)
	snap := func(u []float64) []float64 { return h.space.Unit(h.space.Quantile(u)) }
	r := Regret{Bound: b.Regret(snap, random.New(c.Seed, uint64(len(losses)))), Worth: c.Worth}
	if r.Worth == 0 {
		r.Worth = b.Worth(losses, c.MinTrials)
	}
	r.Stop = r.Bound <= r.Worth
	return r, nil
}

// newFeatures returns the features of a space for a model.
func newFeatures(s *Space) surrogate.Features {
	categories := make([]int, len(s.axes))
	for i := range s.axes {
		if a := &s.axes[i]; a.Kind == KindCategorical {
			categories[i] = len(a.List)
		}
	}
	return surrogate.NewFeatures(categories)
}
