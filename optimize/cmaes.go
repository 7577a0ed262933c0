// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/cma"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// CMAESConfig configures [NewCMAES]. Lengths are in the unit cube, where each
// parameter's distribution is uniform and 1 is its whole range.
type CMAESConfig struct {
	// Sigma is the standard deviation that the search begins with, greater than
	// 0. The default, 1/6, puts the bounds three of them from the middle. From 1
	// on the first points are spread evenly; more than 1 counts as 1.
	Sigma float64
	// Start is the point that the search begins around; the zero Point is the
	// middle of each parameter's distribution.
	Start Point
	// Population is the number of points of a generation, from 2; 0 is
	// 4 + ⌊3 ln n⌋ for n numbers.
	Population int
	// Restart is what to do after convergence: "ipop" starts over with twice
	// the population, "bipop" alternates this with small ones, "none"
	// continues.
	Restart string
	// Separable keeps the covariance diagonal: n numbers to learn instead of
	// n²/2, which is faster if parameters do not interact. It is always on in
	// spaces with more than a hundred numbers.
	Separable bool
	// Margin keeps the neighbors of an integer's value within reach.
	Margin bool
	// Surrogate saves evaluations by a quadratic model of the last ones.
	Surrogate bool
}

// DefaultCMAESConfig returns the configuration of "cmaes".
func DefaultCMAESConfig() CMAESConfig {
	return CMAESConfig{Sigma: 1. / 6, Restart: "ipop", Margin: true, Surrogate: true}
}

// mostCorrelated is the greatest number of parameters whose correlations are
// learned: a decomposition of their matrix takes 10 ms.
const mostCorrelated = 100

func (c CMAESConfig) check(space *Space) error {
	switch {
	case !(c.Sigma > 0):
		return fmt.Errorf("sigma is %v: want a number greater than 0", c.Sigma)
	case c.Population < 0 || c.Population == 1:
		return fmt.Errorf("population is %d: want from 2, or 0", c.Population)
	case !slices.Contains(restarts(), c.Restart):
		return fmt.Errorf("restart is %q: want one of %q", c.Restart, restarts())
	case c.Start.space != nil && &c.Start.space.axes[0] != &space.axes[0]:
		return fmt.Errorf("start %v is a point of another space", c.Start)
	}
	return nil
}

// restarts returns the restart strategies, in the order of cma.Restart.
func restarts() []string { return []string{"none", "ipop", "bipop"} }

// NewCMAES returns the sampler by CMA-ES, the covariance matrix adaptation
// evolution strategy (N. Hansen, "The CMA evolution strategy: a tutorial",
// arXiv:1604.00772): a normal distribution of points learns where the better
// ones are, and how parameters depend on each other. It suits numbers, in
// searches of more than some ten trials for each.
//
// It has active updates, restarts, a margin for integers (R. Hamano et
// al., arXiv:2205.13482), and a surrogate (N. Hansen, "A global surrogate
// assisted CMA-ES", 2019), which is what makes it good at a hundred trials.
// Known results give the first distribution its place and shape (M. Nomura et
// al., "Warm starting CMA-ES for hyperparameter optimization", 2021).
//
// Numbers and ordered values of every point are searched so. Categories, and
// parameters that depend on others, are drawn one by one, from how often the
// best trials have had each value.
//
// Results count in the order of their suggestions, and those that come late
// where they belong; a generation never waits for them. The search has one
// objective. Violated constraints on outcomes make a trial worse than any that
// violates them less; a failed trial is worse than any that did not fail.
func NewCMAES(space *Space, seed uint64, c CMAESConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	if err := c.check(space); err != nil {
		return nil, err
	}
	s := &cmaes{space: space, seed: seed, config: c}
	for i := range space.axes {
		switch a := &space.axes[i]; {
		case a.count == 1:
		case a.parent < 0 && a.Kind != KindCategorical:
			s.numbers = append(s.numbers, i)
		default:
			other := cma.Coordinate{Index: i}
			if a.Kind == KindCategorical {
				other.Categories = int(a.count)
			}
			s.others = append(s.others, other)
		}
	}
	return s, nil
}

type cmaes struct {
	space   *Space
	seed    uint64
	config  CMAESConfig
	numbers []int            // axes that the strategy searches
	others  []cma.Coordinate // axes that the companion draws

	mu        sync.Mutex
	history   *History // that the rest was made from
	told      int
	known     int
	companion *cma.Companion
	timeline  *cma.Timeline
}

func (s *cmaes) Sample(ctx context.Context, h *History) (Point, error) {
	if len(h.directions) > 1 {
		return Point{}, fmt.Errorf("cannot sample: cmaes supports one objective, but the search has %d", len(h.directions))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(ctx, h); err != nil {
		return Point{}, err
	}
	numbers, place, extra := random.New(s.seed, uint64(h.Len())), 0, h.Len()
	p, err := novel(h, draws, func() Point {
		u := make([]float64, s.space.Len())
		if len(s.numbers) > 0 {
			var proposal []float64
			if proposal, place = s.timeline.Search.Candidate(place); proposal == nil {
				proposal = s.timeline.Search.Extra(extra)
				extra += 1 << 20
			}
			for k, i := range s.numbers {
				u[i] = proposal[k]
			}
		}
		s.companion.Complete(u, numbers)
		return s.space.Quantile(u)
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// follow updates the state with a history. Results count in the order of
// their suggestions, so that the state does not depend on when they are told:
// a late one rewinds the strategy to before it, and later ones are told again.
func (s *cmaes) follow(ctx context.Context, h *History) error {
	if s.history != h || s.known != len(h.known) {
		s.begin(h)
	}
	if s.told == len(h.told) {
		return nil
	}
	first := slices.Min(h.told[s.told:])
	for _, i := range h.told[s.told:] {
		s.learn(h, h.trials[i])
	}
	s.told = len(h.told)
	if len(s.numbers) == 0 {
		return nil
	}
	s.timeline.Rewind(first)
	for i := s.timeline.Last + 1; i < h.Len(); i++ {
		if t := h.trials[i]; t.State != Pending && t.State != Lost {
			if err := ctx.Err(); err != nil {
				s.history = nil // which has the next call start over
				return err
			}
			s.timeline.Tell(i, s.unit(t.Point), h.value(t), t.Violation())
		}
	}
	return nil
}

func (s *cmaes) begin(h *History) {
	s.history, s.told, s.known = h, 0, len(h.known)
	s.companion = cma.NewCompanion(s.others)
	for _, t := range h.known {
		s.learn(h, t)
	}
	if len(s.numbers) > 0 {
		s.timeline = cma.NewTimeline(s.start(h))
	}
}

// learn tells the companion a result.
func (s *cmaes) learn(h *History, t Trial) {
	if len(s.others) > 0 {
		s.companion.Learn(t.Index, s.space.Unit(t.Point), h.value(t), t.Violation())
	}
}

// value returns the loss of a trial in the first objective, +Inf where it has
// failed.
func (h *History) value(t Trial) float64 {
	if len(t.Values) > 0 && t.State != Infeasible {
		return h.Direction().loss(t.Value())
	}
	return math.Inf(1)
}

// grid returns the borders of the values of whole and ordered numbers, for
// those that have few enough for rounding to matter.
func (s *cmaes) grid(population int) cma.Grid {
	const mostValues = 1000
	g := cma.Grid{Borders: make([][]float64, len(s.numbers))}
	if !s.config.Margin {
		return g
	}
	g.Margin = 1 / float64(len(s.numbers)*population)
	for k, i := range s.numbers {
		a := &s.space.axes[i]
		if a.count == 0 || a.count > mostValues {
			continue
		}
		for value := range a.count - 1 {
			g.Borders[k] = append(g.Borders[k], a.border(value))
		}
	}
	return g
}

func (s *cmaes) start(h *History) cma.Config {
	n := len(s.numbers)
	c := cma.Config{
		Mean: make([]float64, n), Sigma: math.Min(s.config.Sigma, 1), Size: s.config.Population,
		Separable: s.config.Separable || n > mostCorrelated,
		Restart:   cma.Restart(slices.Index(restarts(), s.config.Restart)),
		Model:     s.config.Surrogate,
		Normal:    s.normal, Round: s.round,
	}
	if c.Size == 0 {
		c.Size = cma.Population(n)
	}
	c.Grid = s.grid(c.Size)
	for k := range c.Mean {
		c.Mean[k] = 0.5
	}
	if s.config.Start.space != nil {
		c.Mean = s.unit(s.config.Start)
	}
	if best := s.bestKnown(h); len(best) > 0 {
		c.Mean, c.Sigma, c.Covariance = cma.WarmStart(best)
	}
	return c
}

// bestKnown returns the tenth of the known results that is best, in the unit
// cube.
func (s *cmaes) bestKnown(h *History) (best [][]float64) {
	known := withValues(h.known)
	slices.SortStableFunc(known, func(a, b Trial) int { return h.compare(a, b) })
	for _, t := range known[:(len(known)+9)/10] {
		best = append(best, s.unit(t.Point))
	}
	return best
}

// unit returns where the numbers of a point are in the unit cube.
func (s *cmaes) unit(p Point) []float64 {
	u := make([]float64, len(s.numbers))
	for k, i := range s.numbers {
		u[k] = s.space.axes[i].unit(p.at[i])
	}
	return u
}

// round returns the unit of what a place in the unit cube is rounded to.
func (s *cmaes) round(u []float64) []float64 {
	rounded := make([]float64, len(u))
	for k, i := range s.numbers {
		a := &s.space.axes[i]
		rounded[k] = a.unit(a.quantile(u[k]))
	}
	return rounded
}

func (s *cmaes) normal(generation, k int, z []float64) {
	numbers := random.New(random.Mix(s.seed+1), uint64(generation)<<32|uint64(uint32(k)))
	for i := range z {
		z[i] = numbers.Normal()
	}
}

func cmaesAlgorithm() maker {
	const sigma, restart, separable, margin, population, surrogate = "sigma", "restart_strategy", "separable", "with_margin", "popsize", "surrogate"
	return maker{
		settings: []string{randomState, sigma, restart, separable, margin, population, surrogate},
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			c := DefaultCMAESConfig()
			if v := s.Float(sigma, 0, settings.NotNegative); v > 0 { // 0 is the default, as in Katib
				c.Sigma = v
			}
			if s.Has(restart) && s.Text(restart, "") != "None" {
				c.Restart = s.Choice(restart, restarts()...)
			} else if s.Has(restart) {
				c.Restart = "none" // which Katib also writes None
			}
			c.Separable = s.Bool(separable, c.Separable)
			c.Margin = s.Bool(margin, c.Margin)
			c.Population = s.Int(population, 0, settings.UpTo(2, mostPopulation))
			c.Surrogate = s.Bool(surrogate, c.Surrogate)
			if p.Space.check() == nil && !slices.ContainsFunc(p.Space.axes, func(a axis) bool { return a.ordered() }) {
				return nil, errors.New("space has only categorical parameters: want at least one that is double, int, discrete or ordered")
			}
			return NewCMAES(p.Space, p.Seed, c)
		},
	}
}
