// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/bayes"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// Acquisition is the acquisition function of a Gaussian process.
type Acquisition string

// The acquisition functions, named as in scikit-optimize.
const (
	// LogEI is the logarithm of the expected improvement on the best value
	// (Ament et al. 2023), which is greatest where that is, but can be climbed
	// also where it is next to nothing.
	LogEI Acquisition = "LogEI"
	// PI is the probability of a value better than the best by a hundredth of
	// the deviation of all.
	PI Acquisition = "PI"
	// LCB is the lower confidence bound, 1.96 deviations below the mean.
	LCB Acquisition = "LCB"
	// Hedge alternates between these, favoring those that chose better points
	// before. The label "acquisition" of a point names the function.
	Hedge Acquisition = "gp_hedge"
)

// GPConfig configures [NewGP].
type GPConfig struct {
	// InitialPoints is how many points of a scrambled Sobol sequence come
	// first, from 0. A model of fewer points than ten knows little.
	InitialPoints int
	// Acquisition chooses among points for one objective. Several objectives,
	// and constraints on outcomes where Acquisition is LCB, have one of their
	// own.
	Acquisition Acquisition
	// Candidates is how many points are compared for a suggestion, from 10,
	// before the best of them are improved. More cost as much more time, and
	// gain little beyond a few hundred.
	Candidates int
	// Climb improves the best candidates by gradient. Without it a suggestion
	// takes less time and is worse.
	Climb bool
	// Local makes every other suggestion minimize a model of only the
	// neighborhood of the best point, if there are enough points for one.
	// This gains many digits on smooth objectives. It is for one objective
	// without constraints on outcomes.
	Local bool
	// MaxObservations is how many results a model uses at most, from 20. The
	// time for a suggestion grows with their square. Beyond it, the best half
	// of as many and a part of the others stand for all.
	MaxObservations int
}

// DefaultGPConfig returns the configuration that measured best on smooth,
// rugged, ill-conditioned and mixed objectives of 2 to 20 parameters.
func DefaultGPConfig() GPConfig {
	engine := bayes.DefaultConfig()
	return GPConfig{
		InitialPoints: 10, Acquisition: LogEI, Candidates: engine.Candidates, Climb: true, Local: true,
		MaxObservations: engine.Limit,
	}
}

func (c GPConfig) validate() error {
	switch {
	case c.InitialPoints < 0:
		return fmt.Errorf("field InitialPoints is %d: want a number from 0", c.InitialPoints)
	case c.Candidates < 10:
		return fmt.Errorf("field Candidates is %d: want a number from 10", c.Candidates)
	case c.MaxObservations < 20:
		return fmt.Errorf("field MaxObservations is %d: want a number from 20", c.MaxObservations)
	case !slices.Contains([]Acquisition{LogEI, PI, LCB, Hedge}, c.Acquisition):
		return fmt.Errorf("field Acquisition is %q: want LogEI, PI, LCB or gp_hedge", c.Acquisition)
	}
	return nil
}

// NewGP returns the sampler that models the objective by a Gaussian process and
// suggests the point that promises the greatest improvement on the best so far
// (Jones, Schonlau and Welch, "Efficient global optimization of expensive
// black-box functions", 1998). It suits searches of up to a few thousand trials
// that take longer than a suggestion, which is some tens of milliseconds.
//
// Several objectives are searched for the hypervolume that their Pareto front
// dominates, and constraints on outcomes for points that satisfy them probably.
// Parameters of all kinds and those that depend on others have their place in
// the model. Pending points count as points with the result that is expected of
// them, failed ones as points with the worst result so far.
func NewGP(space *Space, seed uint64, c GPConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("cannot create Gaussian process sampler: %w", err)
	}
	g := &gaussian{config: c, seed: seed, start: initialDesign(space, seed), search: newBayes(space, c)}
	return g, nil
}

type gaussian struct {
	config GPConfig
	seed   uint64
	start  Sampler
	search *bayes.Search
}

func newBayes(space *Space, c GPConfig) *bayes.Search {
	engine := bayes.DefaultConfig()
	engine.Candidates, engine.Local, engine.Limit = c.Candidates, c.Local, c.MaxObservations
	if !c.Climb {
		engine.Starts = 0
	}
	return bayes.New(dimensions(space), engine)
}

// dimensions describes the parameters for a model.
func dimensions(space *Space) []bayes.Dimension {
	dimensions := make([]bayes.Dimension, space.Len())
	for i := range dimensions {
		a := &space.axes[i]
		dimensions[i] = bayes.Dimension{
			Values: int(a.count), Categorical: !a.ordered(), Conditional: a.parent >= 0,
		}
	}
	return dimensions
}

func (g *gaussian) Sample(ctx context.Context, h *History) (Point, error) {
	return g.sample(ctx, h, func(d bayes.Data, q bayes.Query) [][]float64 { return g.search.Propose(d, q) })
}

// sample returns the next point of the initial design, or the first new one of
// a model's proposals.
func (g *gaussian) sample(ctx context.Context, h *History, propose func(bayes.Data, bayes.Query) [][]float64) (Point, error) {
	if err := ctx.Err(); err != nil {
		return Point{}, err
	}
	d := observed(h)
	if len(d.Observations) == 0 || h.Len()+len(h.Known()) < g.config.InitialPoints || exhausted(h) {
		return g.start.Sample(ctx, h)
	}
	numbers := random.New(g.seed, uint64(h.Len()))
	rule, labels := g.rule(h, numbers)
	snap := func(u []float64) ([]float64, bool) {
		p := h.space.Quantile(u)
		return h.space.Unit(p), !h.Contains(p) && h.space.Feasible(p)
	}
	proposals := propose(d, bayes.Query{Rule: rule, Turn: h.Len(), Snap: snap, Random: numbers.Float})
	p, err := novel(h, len(proposals), func() Point {
		u := proposals[0]
		proposals = proposals[1:]
		return h.space.Quantile(u)
	})
	if err != nil {
		return Point{}, err
	}
	return p.WithLabels(labels), ctx.Err()
}

// observed returns the history as numbers, known results first and then trials
// by index: an order that does not depend on when results were told.
func observed(h *History) bayes.Data {
	d := bayes.Data{Objectives: len(h.directions)}
	stoppedAtBest := medianLosses(h)
	for _, trials := range [][]Trial{h.known, h.trials} {
		for _, t := range trials {
			switch t.State {
			case Lost:
				continue
			case Pending:
				d.Pending = append(d.Pending, h.space.Unit(t.Point))
				continue
			}
			o := bayes.Observation{Point: h.space.Unit(t.Point), Losses: h.losses(t), Violations: t.Violations}
			if t.State == Stopped {
				for k := range o.Losses {
					o.Losses[k] = math.Max(o.Losses[k], stoppedAtBest[k])
				}
			}
			d.Observations = append(d.Observations, o)
		}
	}
	return d
}

// medianLosses returns the median of each objective over the complete trials: a
// trial that was stopped early is taken to be no better, whatever was seen last.
func medianLosses(h *History) []float64 {
	medians := make([]float64, len(h.directions))
	for k := range medians {
		medians[k] = math.Inf(-1)
		var losses []float64
		for _, trials := range [][]Trial{h.known, h.trials} {
			for _, t := range trials {
				if t.State == Complete {
					losses = append(losses, h.directions[k].loss(t.Values[k]))
				}
			}
		}
		if len(losses) > 0 {
			slices.Sort(losses)
			medians[k] = losses[len(losses)/2]
		}
	}
	return medians
}

// acquisitionLabel names the acquisition function of a suggestion.
const acquisitionLabel = "acquisition"

// ruleNames are the acquisition functions by rule.
var ruleNames = []Acquisition{bayes.ExpectedImprovement: LogEI, bayes.ImprovementProbability: PI, bayes.ConfidenceBound: LCB}

// rule returns the acquisition function for the next point, and the point's
// labels.
func (g *gaussian) rule(h *History, numbers *random.Stream) (bayes.Rule, map[string]string) {
	ruleOf := func(a Acquisition) bayes.Rule { return bayes.Rule(slices.Index(ruleNames, a)) }
	if g.config.Acquisition != Hedge {
		return ruleOf(g.config.Acquisition), nil
	}
	var past []bayes.Choice
	for _, t := range h.trials {
		if label := t.Point.Labels()[acquisitionLabel]; label != "" && t.State == Complete {
			past = append(past, bayes.Choice{Rule: ruleOf(Acquisition(label)), Loss: h.Direction().loss(t.Value())})
		}
	}
	rule := bayes.Hedge(past, numbers.Float())
	return rule, map[string]string{acquisitionLabel: string(ruleNames[rule])}
}

// bayesianAlgorithm is Katib's bayesianoptimization, which is scikit-optimize's
// Optimizer:
//
//   - base_estimator: GP (the default), RF, ET or GBRT;
//   - n_initial_points: 10;
//   - acq_func: LogEI (the default), EI, PI, LCB, gp_hedge, and EIps and PIps,
//     which are EI and PI because what a trial takes is not known;
//   - acq_optimizer: auto or lbfgs, which climb where there is a gradient, or
//     sampling, which compares candidates alone;
//   - random_state.
func bayesianAlgorithm() maker {
	return maker{
		settings: []string{"base_estimator", "n_initial_points", "acq_func", "acq_optimizer", randomState},
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			c := DefaultGPConfig()
			c.InitialPoints = s.Int("n_initial_points", c.InitialPoints, settings.NotNegative)
			c.Acquisition = acquisitions[s.Choice("acq_func", "LogEI", "EI", "PI", "LCB", "gp_hedge", "EIps", "PIps")]
			c.Climb = s.Choice("acq_optimizer", "auto", "lbfgs", "sampling") != "sampling"
			estimator := s.Choice("base_estimator", "GP", "RF", "ET", "GBRT")
			if err := s.Err(); err != nil {
				return nil, nil
			}
			if estimator == "GP" {
				return NewGP(p.Space, p.Seed, c)
			}
			trees := DefaultForestConfig()
			trees.InitialPoints, trees.Acquisition, trees.Kind = c.InitialPoints, c.Acquisition, estimators[estimator]
			return NewForest(p.Space, p.Seed, trees)
		},
	}
}

var (
	acquisitions = map[string]Acquisition{
		"LogEI": LogEI, "EI": LogEI, "EIps": LogEI, "PI": PI, "PIps": PI, "LCB": LCB, "gp_hedge": Hedge,
	}
	estimators = map[string]ForestKind{"RF": RandomForest, "ET": ExtraTrees, "GBRT": GradientBoosting}
)
