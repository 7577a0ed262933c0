// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
)

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
// 2). Whenever a suggestion is wanted, it is a configuration that is among the
// best part 1/Eta of those that have ended on a rung so far, and has not come to
// the next rung yet, the highest rung first; and where there is none, a new
// configuration. So nobody ever waits. A trial that fails is the worst of its
// rung.
//
// It fails where the config names no fitting resource or has a number out of
// its range.
func NewASHA(space *Space, seed uint64, c ASHAConfig) (Sampler, error) {
	f, err := newFidelity(space, seed, c.FidelityConfig)
	if err != nil {
		return nil, err
	}
	if c.Brackets < 1 || c.Brackets > len(f.ladder) {
		return nil, fmt.Errorf("brackets is %d: want a whole number from 1 to the number of rungs, %d", c.Brackets, len(f.ladder))
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
	b := s.read(h)
	for rung := len(s.ladder) - 2; rung >= 0; rung-- {
		for bracket := range s.brackets {
			if p, ok := s.promote(b, bracket, rung); ok {
				return p, nil
			}
		}
	}
	bracket := s.bracket(b)
	return s.begin(ctx, b, bracket, bracket)
}

// promote returns the best configuration of a rung that may come to the next,
// and false where there is none.
func (s *asha) promote(b *fidelityBoard, bracket, rung int) (Point, bool) {
	finished := b.finished(bracket, rung)
	best := finished[:int(float64(len(finished))/s.Eta*(1+1e-9))]
	for _, i := range s.candidates(b, best) {
		if !b.runs[i].promoted {
			return s.promotion(b, i), true
		}
	}
	return Point{}, false
}

// bracket returns the bracket that is furthest behind its share of the new
// configurations.
func (s *asha) bracket(b *fidelityBoard) int {
	best, least := 0, 0.0
	for bracket := range s.brackets {
		share := bracketPlan(len(s.ladder), bracket, s.Eta)[bracket]
		filled := float64(b.at(bracket, bracket).started+1) / float64(share)
		if bracket == 0 || filled < least {
			best, least = bracket, filled
		}
	}
	return best
}

func ashaAlgorithm() maker {
	return maker{
		settings: append(fidelitySettings(), "brackets", "sampler", randomState),
		build: func(s *settings, p Problem) (Sampler, error) {
			c := DefaultASHAConfig()
			s.fidelity(&c.FidelityConfig)
			c.Brackets = s.int("brackets", c.Brackets, atLeast(1))
			if s.choice("sampler", "random", "multivariate-tpe") != "random" {
				c.Configurations = func(space *Space, seed uint64) (Sampler, error) {
					return NewTPE(space, seed, DefaultTPEConfig())
				}
			}
			if s.err() != nil {
				return nil, nil // s says why
			}
			return NewASHA(p.Space, p.Seed, c)
		},
	}
}
