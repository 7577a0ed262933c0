// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"

	"diwan.dev/diwan/optimize/internal/settings"
)

// HyperbandConfig configures [NewHyperband].
type HyperbandConfig struct {
	FidelityConfig
}

// DefaultHyperbandConfig returns the defaults, which lack the resource.
func DefaultHyperbandConfig() HyperbandConfig {
	return HyperbandConfig{DefaultFidelityConfig()}
}

// NewHyperband returns the sampler of Hyperband (Li et al., "Hyperband: a novel
// bandit-based approach to hyperparameter optimization", JMLR 2018, Algorithm
// 1). Its brackets each begin with some configurations on one rung and bring
// the best part 1/Eta of those on a rung to the next. They trade configurations
// for resource: the first bracket begins with the most configurations and the
// least resource, the last gives few of them the most. After the last comes the
// first again.
//
// It decides as if it waited for each rung, but waits for none: a configuration
// is promoted as soon as it is certain to be among the best, and a worker
// without work in one bracket starts the next. So any number of suggestions may
// be pending. A trial that fails is the worst of its rung.
//
// It fails where the config names no fitting resource or has a number out of
// its range.
func NewHyperband(space *Space, seed uint64, c HyperbandConfig) (Sampler, error) {
	f, err := newFidelity(space, seed, c.FidelityConfig)
	if err != nil {
		return nil, err
	}
	return &hyperband{f}, nil
}

type hyperband struct{ *fidelity }

func (s *hyperband) Sample(ctx context.Context, h *History) (Point, error) {
	if err := ctx.Err(); err != nil {
		return Point{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.read(h)
	return s.suggest(ctx, past, past.board.Hyperband(s.Eta, s.promotable(past)))
}

func hyperbandAlgorithm() maker {
	return maker{
		settings: append(fidelitySettings(), randomState),
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			c := DefaultHyperbandConfig()
			readFidelity(s, &c.FidelityConfig)
			if s.Err() != nil {
				return nil, nil // s says why
			}
			return NewHyperband(p.Space, p.Seed, c)
		},
	}
}

// ASHAConfig configures [NewASHA].
type ASHAConfig struct {
	FidelityConfig
	// Brackets is how many brackets there are, from 1, the default, to the
	// number of rungs. Bracket s leaves out the first s rungs. New
	// configurations are dealt out to them as to Hyperband's, most of them to
	// the first.
	Brackets int
}

// DefaultASHAConfig returns the defaults, which lack the resource.
func DefaultASHAConfig() ASHAConfig { return ASHAConfig{DefaultFidelityConfig(), 1} }

// NewASHA returns the sampler of asynchronous successive halving (Li et al., "A
// system for massively parallel hyperparameter tuning", MLSys 2020, Algorithm
// 2). Each suggestion is a configuration that is among the best fraction 1/Eta
// of those that have finished on a rung so far, and has not been promoted yet,
// the highest rung first; if there is none, it is a new configuration. So no
// worker ever waits. A trial that fails is the worst of its rung.
//
// It fails where the config names no fitting resource or has a number out of
// its range.
func NewASHA(space *Space, seed uint64, c ASHAConfig) (Sampler, error) {
	f, err := newFidelity(space, seed, c.FidelityConfig)
	if err != nil {
		return nil, err
	}
	if c.Brackets < 1 || c.Brackets > len(f.ladder) {
		return nil, fmt.Errorf("brackets is %d: want an integer from 1 to the number of rungs, %d", c.Brackets, len(f.ladder))
	}
	return &asha{f, c.Brackets}, nil
}

type asha struct {
	*fidelity
	brackets int
}

func (s *asha) Sample(ctx context.Context, h *History) (Point, error) {
	if err := ctx.Err(); err != nil {
		return Point{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.read(h)
	return s.suggest(ctx, past, past.board.ASHA(s.Eta, s.brackets, s.promotable(past)))
}

func ashaAlgorithm() maker {
	return maker{
		settings: append(fidelitySettings(), "brackets", "sampler", randomState),
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			c := DefaultASHAConfig()
			readFidelity(s, &c.FidelityConfig)
			c.Brackets = s.Int("brackets", c.Brackets, settings.AtLeast(1))
			if s.Choice("sampler", "random", "multivariate-tpe") != "random" {
				c.Configurations = func(space *Space, seed uint64) (Sampler, error) {
					return NewTPE(space, seed, DefaultTPEConfig())
				}
			}
			if s.Err() != nil {
				return nil, nil // s says why
			}
			return NewASHA(p.Space, p.Seed, c)
		},
	}
}
