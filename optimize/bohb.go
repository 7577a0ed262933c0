// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"

	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// BOHBConfig configures [NewBOHB].
type BOHBConfig struct {
	// FidelityConfig configures the brackets, which are Hyperband's. Its
	// Configurations are not used: they come from the model.
	FidelityConfig
	// RandomFraction, from 0 to 1, is how likely a configuration is random, so
	// that the search is never much slower than Hyperband's. It is a third in
	// the paper.
	RandomFraction float64
	// Model configures how configurations are suggested. The default is
	// multivariate-tpe's with the paper's fraction of good ones, 15 %, and
	// number of candidates, 64. Its Startup is not used: see MinPoints.
	Model TPEConfig
}

// DefaultBOHBConfig returns the defaults, which lack the resource.
func DefaultBOHBConfig() BOHBConfig {
	model := DefaultTPEConfig()
	model.Gamma, model.Candidates = 0.15, 64
	return BOHBConfig{DefaultFidelityConfig(), 1.0 / 3, model}
}

// NewBOHB returns the sampler that has Hyperband's brackets and takes their
// configurations from a model of which are good on the highest rung that at
// least MinPoints of them have reached (Falkner, Klein and Hutter, "BOHB:
// robust and efficient hyperparameter optimization at scale", 2018). The model
// is asked once twice as many have values there; see [FidelityConfig].
//
// It fails where the config names no fitting resource or has a number out of
// its range.
func NewBOHB(space *Space, seed uint64, c BOHBConfig) (Sampler, error) {
	if !(c.RandomFraction >= 0 && c.RandomFraction <= 1) {
		return nil, fmt.Errorf("random_fraction is %v: want a number from 0 to 1", c.RandomFraction)
	}
	c.Configurations = func(space *Space, seed uint64) (Sampler, error) {
		c := c // of this sampler alone
		if c.Model.Startup = c.MinPoints + 2; c.MinPoints == 0 {
			c.Model.Startup = space.Len() + 3
		}
		model, err := NewTPE(space, seed, c.Model)
		return bohb{c.RandomFraction, seed, model}, err
	}
	return NewHyperband(space, seed, HyperbandConfig{c.FidelityConfig})
}

// bohb suggests configurations by a model, and now and then by chance.
type bohb struct {
	randomFraction float64
	seed           uint64
	model          Sampler
}

func (s bohb) Sample(ctx context.Context, h *History) (Point, error) {
	if random.New(random.Mix(s.seed), uint64(h.Len())).Float() < s.randomFraction {
		return NewRandom(s.seed).Sample(ctx, h)
	}
	return s.model.Sample(ctx, h)
}

func bohbAlgorithm() maker {
	return maker{
		settings: append(fidelitySettings(), "min_points_in_model", "random_fraction", "top_n_percent", "num_samples", randomState),
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			c := DefaultBOHBConfig()
			readFidelity(s, &c.FidelityConfig)
			c.MinPoints = s.Int("min_points_in_model", 0, settings.AtLeast(1))
			c.RandomFraction = s.Float("random_fraction", c.RandomFraction, settings.UnitInterval)
			c.Model.Gamma = s.Float("top_n_percent", 100*c.Model.Gamma, percent) / 100
			c.Model.Candidates = s.Int("num_samples", c.Model.Candidates, settings.UpTo(1, mostCandidates))
			if s.Err() != nil {
				return nil, nil // s says why
			}
			return NewBOHB(p.Space, p.Seed, c)
		},
	}
}

var percent = settings.Range{Holds: func(v float64) bool { return v > 0 && v < 100 }, Text: "between 0 and 100"}
