// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize/internal/bayes"
	"diwan.dev/diwan/optimize/internal/forest"
	"diwan.dev/diwan/optimize/internal/random"
)

// ForestKind is a way to model an objective by many trees.
type ForestKind string

// The kinds of forests, named as in Katib.
const (
	RandomForest     ForestKind = "RF"
	ExtraTrees       ForestKind = "ET"
	GradientBoosting ForestKind = "GBRT"
)

var forests = map[ForestKind]forest.Kind{
	RandomForest: forest.RandomForest, ExtraTrees: forest.ExtraTrees, GradientBoosting: forest.GradientBoosting,
}

// ForestConfig configures [NewForest].
type ForestConfig struct {
	// Kind of the forest.
	Kind ForestKind
	// Trees is how many there are, from 1; for GBRT for each of three
	// quantiles.
	Trees int
	// InitialPoints, Acquisition and Candidates are as in [GPConfig].
	InitialPoints int
	Acquisition   Acquisition
	Candidates    int
}

// DefaultForestConfig returns a configuration with scikit-optimize's number of
// trees.
func DefaultForestConfig() ForestConfig {
	gp := DefaultGPConfig()
	return ForestConfig{
		Kind: RandomForest, Trees: forest.DefaultConfig(forest.RandomForest).Trees,
		InitialPoints: gp.InitialPoints, Acquisition: gp.Acquisition, Candidates: gp.Candidates,
	}
}

// NewForest returns the sampler that works as [NewGP] does but with a model of
// many trees in place of a Gaussian process, as SMAC does (Hutter, Hoos and
// Leyton-Brown, "Sequential model-based optimization for general algorithm
// configuration", 2011). It suits objectives that jump, and many categorical
// parameters.
func NewForest(space *Space, seed uint64, c ForestConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	gp := DefaultGPConfig()
	gp.InitialPoints, gp.Acquisition, gp.Candidates = c.InitialPoints, c.Acquisition, c.Candidates
	err := gp.validate()
	switch _, known := forests[c.Kind]; {
	case err == nil && !known:
		err = fmt.Errorf("field Kind is %q: want RF, ET or GBRT", c.Kind)
	case err == nil && c.Trees < 1:
		err = fmt.Errorf("field Trees is %d: want a number from 1", c.Trees)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create forest sampler: %w", err)
	}
	model := forest.DefaultConfig(forests[c.Kind])
	model.Trees = c.Trees
	return &trees{
		gaussian: gaussian{config: gp, seed: seed, start: initialDesign(space, seed), search: newBayes(space, gp)},
		model:    model,
	}, nil
}

type trees struct {
	gaussian
	model forest.Config
}

func (t *trees) Sample(ctx context.Context, h *History) (Point, error) {
	return t.sample(ctx, h, func(d bayes.Data, q bayes.Query) [][]float64 {
		newest := d.Observations[max(0, len(d.Observations)-maxForestRows):]
		d.Observations = slices.Clip(newest)
		return t.search.ProposeByTrees(d, t.model, random.Mix(t.seed+uint64(h.Len())), q)
	})
}

// maxForestRows is how many of the newest results a forest is grown from.
const maxForestRows = 2000
