// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"math"
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
// It decides as if each rung were waited for, but waits for none: a
// configuration comes to the next rung as soon as nothing can keep it from
// being among the best, and a worker for which there is nothing to do yet in
// one bracket begins the next. So any number of suggestions may be pending. A
// trial that fails is the worst of its rung.
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
	b := s.read(h)
	for bracket := 0; ; bracket++ {
		if bracket < len(b.closed) && b.closed[bracket] {
			continue
		}
		plan := bracketPlan(len(s.ladder), bracket, s.Eta)
		if p, ok := s.promote(b, bracket, plan); ok {
			return p, nil
		}
		if first := bracket % len(s.ladder); b.at(bracket, first).started < plan[first] {
			return s.begin(ctx, b, bracket, first)
		}
	}
}

// bracketPlan returns how many configurations a bracket has on each rung: none
// on the first ones that it leaves out, then with s+1 rungs left of smax+1
// n = ⌈(smax+1)/(s+1)·η^s⌉ and ⌊n/η^i⌋ on the i-th after that.
func bracketPlan(rungs, bracket int, eta float64) []int {
	first := bracket % rungs
	s := rungs - 1 - first
	n := math.Ceil(float64(rungs) / float64(s+1) * math.Pow(eta, float64(s)) * (1 - 1e-9))
	plan := make([]int, rungs)
	for i := range s + 1 {
		plan[first+i] = max(int(n*math.Pow(eta, -float64(i))*(1+1e-9)), 1)
	}
	return plan
}

// promote returns the best configuration that is certain to come to the next
// rung of a bracket, the highest rung first, and false where there is none.
func (s *hyperband) promote(b *fidelityBoard, bracket int, plan []int) (Point, bool) {
	var promotion Point
	come := plan[bracket%len(plan)] // how many will at most come to the rung
	found, waiting := false, b.at(bracket, bracket%len(plan)).started < come
	for rung := bracket % len(plan); rung < len(plan)-1; rung++ {
		finished := b.finished(bracket, rung)
		candidates := s.candidates(b, finished)
		missing := max(come-len(finished), 0)
		waiting = waiting || missing > 0
		for place, i := range candidates {
			if place+missing >= plan[rung+1] {
				break
			}
			if !b.runs[i].promoted {
				promotion, found = s.promotion(b, i), true
				break
			}
		}
		if come = plan[rung+1]; missing == 0 {
			come = min(come, len(candidates))
		}
	}
	if !found && !waiting {
		b.closed[bracket] = true
	}
	return promotion, found
}

func hyperbandAlgorithm() maker {
	return maker{
		settings: append(fidelitySettings(), randomState),
		build: func(s *settings, p Problem) (Sampler, error) {
			c := DefaultHyperbandConfig()
			s.fidelity(&c.FidelityConfig)
			if s.err() != nil {
				return nil, nil // s says why
			}
			return NewHyperband(p.Space, p.Seed, c)
		},
	}
}

// fidelitySettings are the settings of all samplers over a resource.
func fidelitySettings() []string { return []string{"resource_name", "r_l", "r_min", "eta"} }

// fidelity reads the settings of all samplers over a resource, of which Katib
// requires two.
func (s *settings) fidelity(c *FidelityConfig) {
	s.require("resource_name", "the name of the parameter that is the resource")
	s.require("r_l", "the most of the resource that a trial may use")
	c.Resource = s.text("resource_name", "")
	c.Max = s.float("r_l", 0, positive)
	c.Min = s.float("r_min", 0, positive)
	c.Eta = s.float("eta", c.Eta, within{func(v float64) bool { return v > 1 }, "greater than 1"})
}
