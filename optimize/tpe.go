// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/parzen"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
	"diwan.dev/diwan/optimize/internal/tpe"
)

// TPEConfig configures a tree-structured Parzen estimator.
type TPEConfig struct {
	// Multivariate models parameters jointly, which finds interactions,
	// instead of independently.
	Multivariate bool
	// Startup is how many results are awaited before the model is asked, from
	// 0: until then points come from a scrambled Sobol sequence. Optuna's
	// number is 10 and hyperopt's 20.
	Startup int
	// Candidates is how many points are drawn from the model of the good
	// trials for each suggestion, from 1; the best of them is suggested. The
	// number is 24 in both libraries.
	Candidates int
	// Gamma, greater than 0, determines how many trials are good: Gamma·n of n
	// with a value, or where Root is set Gamma·√n, rounded up, no fewer than
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
	if err := space.check(); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("cannot make TPE: %w", err)
	}
	model := tpe.Model{
		Groups: tpeGroups(space, c.Multivariate), Joint: c.Multivariate,
		Prior: c.PriorWeight, Candidates: c.Candidates,
	}
	return &tpeSampler{TPEConfig: c, seed: seed, startup: initialDesign(space, seed), model: model}, nil
}

type tpeSampler struct {
	TPEConfig
	seed    uint64
	startup Sampler
	model   tpe.Model

	mu       sync.Mutex
	history  *History // that the evidence is of
	told     int
	evidence *tpe.Evidence
}

// rounds is how often candidates are redrawn if none of them is usable.
const rounds = 4

func (s *tpeSampler) Sample(ctx context.Context, h *History) (Point, error) {
	if len(h.told)+len(h.known) < s.Startup {
		return s.startup.Sample(ctx, h)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(h)
	exists := func(g tpe.Group, u []float64) bool {
		first := g.Coordinates[0]
		return h.space.axes[first].parent < 0 || h.space.active(first, h.space.Quantile(u))
	}
	next := s.model.Propose(s.evidence.Split(s.good, s.others()), exists, h.space.Len(), random.New(s.seed, uint64(h.Len())).Float)
	p, err := novel(h, rounds*s.Candidates, func() Point { return h.space.Quantile(next()) })
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// follow takes in what is new in the history.
func (s *tpeSampler) follow(h *History) {
	if s.history != h {
		s.history, s.told, s.evidence = h, 0, tpe.NewEvidence(len(h.directions))
	}
	trials, known := s.evidence.Len()
	for _, t := range h.known[known:] {
		s.evidence.AddKnown(h.space.Unit(t.Point), tpeResult(h, t))
	}
	for _, t := range h.trials[trials:] {
		if t.State == Lost {
			s.evidence.Add(nil)
		} else {
			s.evidence.Add(h.space.Unit(t.Point))
		}
	}
	for ; s.told < len(h.told); s.told++ {
		i := h.told[s.told]
		s.evidence.Tell(i, tpeResult(h, h.trials[i]))
	}
}

// tpeResult returns how a trial ended as evidence.
func tpeResult(h *History, t Trial) tpe.Result {
	return tpe.Result{
		Failed: t.State == Failed || t.State == Infeasible, Violation: t.Violation(),
		Stopped: t.State == Stopped, Step: t.Step, Losses: h.losses(t),
	}
}

// tpeGroups returns the groups of a space, those of parents before those of
// their children. Parameters with a single value are in none.
func tpeGroups(space *Space, multivariate bool) []tpe.Group {
	var groups []tpe.Group
	for _, i := range space.order {
		a := &space.axes[i]
		if a.count == 1 {
			continue
		}
		same := func(g tpe.Group) bool {
			first := &space.axes[g.Coordinates[0]]
			return multivariate && first.parent == a.parent && slices.Equal(first.where, a.where)
		}
		at := slices.IndexFunc(groups, same)
		if at < 0 {
			at = len(groups)
			groups = append(groups, tpe.Group{})
		}
		groups[at].Coordinates = append(groups[at].Coordinates, i)
		groups[at].Axes = append(groups[at].Axes, a.cube())
	}
	return groups
}

// fine is the number of values from which an axis is modelled as continuous.
const fine = 32

// cube returns how the axis divides the unit interval.
func (a *axis) cube() parzen.Axis {
	switch {
	case !a.ordered():
		return parzen.Axis{Choices: int(a.count)}
	case a.count == 0:
		return parzen.Axis{}
	case a.count > fine:
		return parzen.Axis{Grain: 1 / float64(a.count)}
	case !a.shaped():
		return parzen.Axis{Edges: parzen.Even(int(a.count))}
	}
	edges := make([]float64, a.count+1)
	for k := range a.count - 1 {
		edges[k+1] = math.Max(a.cumulate(a.coordinate(k)+a.Step/2), edges[k])
	}
	edges[a.count] = 1
	return parzen.Axis{Edges: edges}
}

func tpeAlgorithm() maker {
	return maker{
		settings: []string{"gamma", "prior_weight", "n_EI_candidates", "n_ei_candidates", "n_startup_trials", randomState},
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			c := DefaultUnivariateTPEConfig()
			c.PriorWeight = s.Float("prior_weight", c.PriorWeight, settings.Positive)
			c.Candidates = s.Int("n_EI_candidates", c.Candidates, settings.UpTo(1, mostCandidates))
			if s.Has("gamma") {
				c.Gamma, c.Root, c.MinGood = s.Float("gamma", c.Gamma, settings.OpenUnit), true, 1
			}
			return buildTPE(s, p, c)
		},
	}
}

func multivariateTPEAlgorithm() maker {
	return maker{
		settings: []string{"n_ei_candidates", "n_startup_trials", randomState},
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			return buildTPE(s, p, DefaultTPEConfig())
		},
	}
}

// buildTPE reads the settings that both algorithms have. Optuna accepts 0
// candidates only to fail later; it is taken for the default.
func buildTPE(s *settings.Reader, p Problem, c TPEConfig) (Sampler, error) {
	c.Startup = s.Int("n_startup_trials", c.Startup, settings.NotNegative)
	if n := s.Int("n_ei_candidates", c.Candidates, settings.UpTo(0, mostCandidates)); n > 0 {
		c.Candidates = n
	}
	return NewTPE(p.Space, p.Seed, c)
}
