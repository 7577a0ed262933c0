// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"diwan.dev/diwan/optimize/internal/random"
)

// TPEConfig says how a tree-structured Parzen estimator searches.
type TPEConfig struct {
	// Multivariate is set to model parameters together, which finds what
	// matters in combination, and not each by itself.
	Multivariate bool
	// Startup is how many results are awaited before the model is asked, from
	// 0: until then points come from a scrambled Sobol sequence. Optuna's
	// number is 10 and hyperopt's 20.
	Startup int
	// Candidates is how many points are drawn from the model of the good
	// trials for each suggestion, from 1; the best of them is suggested. The
	// number is 24 in both libraries.
	Candidates int
	// Gamma, greater than 0, says how many trials are good: Gamma·n of n with
	// a value, or where Root is set Gamma·√n, rounded up, no fewer than
	// MinGood and no more than MaxGood. Optuna has 0.1·n and hyperopt 0.25·√n,
	// and both at most 25.
	Gamma            float64
	Root             bool
	MinGood, MaxGood int
	// PriorWeight, greater than 0, is how many trials the parameters' own
	// distributions count for in the models. It is 1 in both libraries.
	PriorWeight float64
}

// DefaultTPEConfig returns the configuration of the sampler multivariate-tpe.
// Its numbers are Optuna's, but for MinGood: fewer rows than that have no
// shape to learn.
func DefaultTPEConfig() TPEConfig {
	return TPEConfig{Multivariate: true, Startup: 10, Candidates: 24, Gamma: 0.1, MinGood: 4, MaxGood: 25, PriorWeight: 1}
}

// DefaultUnivariateTPEConfig returns the configuration of the sampler tpe. On a
// single axis two rows have a shape.
func DefaultUnivariateTPEConfig() TPEConfig {
	return TPEConfig{Startup: 10, Candidates: 24, Gamma: 0.1, MinGood: 2, MaxGood: 25, PriorWeight: 1}
}

func (c TPEConfig) validate() error {
	var problems []error
	refuse := func(name string, value any, want string) {
		problems = append(problems, fmt.Errorf("%s is %v: want %s", name, value, want))
	}
	if c.Startup < 0 {
		refuse("Startup", c.Startup, "a number from 0")
	}
	if c.Candidates < 1 {
		refuse("Candidates", c.Candidates, "a number from 1")
	}
	if !(c.Gamma > 0) || math.IsInf(c.Gamma, 0) {
		refuse("Gamma", c.Gamma, "a finite number greater than 0")
	}
	if c.MinGood < 1 || c.MaxGood < c.MinGood {
		refuse("MinGood to MaxGood", fmt.Sprint(c.MinGood, " to ", c.MaxGood), "a range of numbers from 1")
	}
	if !(c.PriorWeight > 0) || math.IsInf(c.PriorWeight, 0) {
		refuse("PriorWeight", c.PriorWeight, "a finite number greater than 0")
	}
	return errors.Join(problems...)
}

// good returns how many of n trials with a value are good.
func (c TPEConfig) good(n int) int {
	of := float64(n)
	if c.Root {
		of = math.Sqrt(of)
	}
	wanted := math.Min(math.Ceil(c.Gamma*of), float64(c.MaxGood))
	return min(max(int(wanted), c.MinGood), n)
}

// others returns how many of the trials that are not good a model has at most.
// More of them would cost time and change little.
func (c TPEConfig) others() int {
	if c.Multivariate {
		return 256
	}
	return 96
}

// NewTPE returns the sampler that divides trials into good and others, models
// either by a mixture of kernels, and suggests a point that is as much more
// likely among the good than among the others as possible: a tree-structured
// Parzen estimator (Bergstra et al., "Algorithms for hyper-parameter
// optimization", 2011).
//
// Parameters that exist under the same condition are modelled from those trials
// that have them. Of several objectives, the good trials are those of the first
// Pareto fronts, and of the front that is to be divided those that have most of
// the hypervolume (Ozaki et al. 2022). Trials that were stopped early are behind
// all complete ones, the later the better, and those that violate constraints
// behind these. Trials that failed are never good, and neither are those
// pending, so that others keep away from them.
func NewTPE(space *Space, seed uint64, c TPEConfig) (Sampler, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("cannot make TPE: %w", err)
	}
	startup, err := newStartup(space, seed)
	if err != nil {
		return nil, err
	}
	return &tpe{TPEConfig: c, seed: seed, startup: startup, groups: tpeGroups(space, c.Multivariate)}, nil
}

type tpe struct {
	TPEConfig
	seed    uint64
	startup Sampler
	groups  []tpeGroup

	mu       sync.Mutex
	evidence *tpeEvidence // of the history seen last
}

func (s *tpe) Sample(ctx context.Context, h *History) (Point, error) {
	if len(h.told)+len(h.known) < s.Startup {
		return s.startup.Sample(ctx, h)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.evidence == nil || !s.evidence.of(h) {
		s.evidence = newTPEEvidence(h)
	}
	s.evidence.update()
	proposals := s.propose(h.space, s.evidence.split(s.good, s.others()), random.New(s.seed, uint64(h.Len())))
	p, err := novel(h, tpeRounds*s.Candidates, proposals)
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// newStartup returns the sampler of the first points: a scrambled Sobol
// sequence, or random points in a space that is too large for one.
func newStartup(space *Space, seed uint64) (Sampler, error) {
	if space.Len() > MaxSobol {
		return NewRandom(seed), nil
	}
	return NewSobol(space, seed)
}

func tpeAlgorithm() maker {
	return maker{
		settings: []string{"gamma", "prior_weight", "n_EI_candidates", "n_ei_candidates", "n_startup_trials", randomState},
		build: func(s *settings, p Problem) (Sampler, error) {
			c := DefaultUnivariateTPEConfig()
			c.PriorWeight = s.float("prior_weight", c.PriorWeight, positive)
			c.Candidates = s.int("n_EI_candidates", c.Candidates, atLeast(1))
			if s.has("gamma") {
				c.Gamma, c.Root, c.MinGood = s.float("gamma", c.Gamma, openUnit), true, 1
			}
			return buildTPE(s, p, c)
		},
	}
}

func multivariateTPEAlgorithm() maker {
	return maker{
		settings: []string{"n_ei_candidates", "n_startup_trials", randomState},
		build: func(s *settings, p Problem) (Sampler, error) {
			return buildTPE(s, p, DefaultTPEConfig())
		},
	}
}

// buildTPE reads the settings that both algorithms have. Optuna accepts 0
// candidates only to fail later; it is taken for the default.
func buildTPE(s *settings, p Problem, c TPEConfig) (Sampler, error) {
	c.Startup = s.int("n_startup_trials", c.Startup, notNegative)
	if n := s.int("n_ei_candidates", c.Candidates, notNegative); n > 0 {
		c.Candidates = n
	}
	return NewTPE(p.Space, p.Seed, c)
}
