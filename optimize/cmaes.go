// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize/internal/cma"
	"diwan.dev/diwan/optimize/internal/random"
)

// CMAESConfig says how [NewCMAES] searches. Lengths are in the unit cube, where
// each parameter's distribution is uniform and 1 is its whole range.
type CMAESConfig struct {
	// Sigma is the standard deviation that the search begins with, from above 0
	// to 1. Bounds are then three of them from the middle.
	Sigma float64
	// Start is the point that the search begins around; the zero Point is the
	// middle of each parameter's distribution.
	Start Point
	// Population is the number of points of a generation, from 2; 0 is
	// 4 + ⌊3 ln n⌋ for n numbers.
	Population int
	// Restart says what follows once points no longer differ in a way that
	// matters: "ipop" begins anew with twice the population, "bipop" does so in
	// turn with small ones, "none" goes on.
	Restart string
	// Separable keeps the covariance diagonal: n numbers to learn and not n²/2,
	// which is faster where parameters do not interact. Spaces of more than a
	// hundred numbers have it anyhow.
	Separable bool
	// Margin keeps the neighbours of a whole number's value within reach.
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
	case !(c.Sigma > 0 && c.Sigma <= 1):
		return fmt.Errorf("sigma is %v: want from above 0 to 1", c.Sigma)
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
// It has active updates, restarts, a margin for whole numbers (R. Hamano et
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
			s.others = append(s.others, i)
		}
	}
	return s, nil
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

// border returns where in the unit interval a value with an index by size ends
// and the next begins.
func (a *axis) border(value uint64) float64 {
	if !a.shaped() {
		return float64(value+1) / float64(a.count)
	}
	return a.cumulate(a.coordinate(value) + a.Step/2)
}

func (s *cmaes) start(h *History) cma.Config {
	n := len(s.numbers)
	c := cma.Config{
		Mean: make([]float64, n), Sigma: s.config.Sigma, Size: s.config.Population,
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
		build: func(s *settings, p Problem) (Sampler, error) {
			c := DefaultCMAESConfig()
			c.Sigma = s.float(sigma, c.Sigma, positive)
			if s.has(restart) {
				c.Restart = s.choice(restart, restarts()...)
			}
			c.Separable = s.bool(separable, c.Separable)
			c.Margin = s.bool(margin, c.Margin)
			c.Population = s.int(population, 0, atLeast(2))
			c.Surrogate = s.bool(surrogate, c.Surrogate)
			if n := countNumbers(p.Space); n < 2 {
				return nil, fmt.Errorf("space has %d int or double parameters: want at least 2", n)
			}
			return NewCMAES(p.Space, p.Seed, c)
		},
	}
}

func countNumbers(s *Space) (n int) {
	for i := range s.axes {
		if kind := s.axes[i].Kind; kind == KindDouble || kind == KindInt {
			n++
		}
	}
	return n
}
