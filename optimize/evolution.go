// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/genetic"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// EvolutionConfig configures [NewEvolution].
type EvolutionConfig struct {
	// Population is how many of the newest trials may become parents, from 2.
	// So many points are drawn at random first. 0 chooses a fifth of MaxTrials,
	// but at least 10 and at most 100: Real et al. use 100 for 20,000 trials.
	Population int
	// Sample is how many of the population compete to be the parent, from 1 to
	// Population. 0 chooses a quarter of the population, as Real et al. do.
	Sample int
	// MaxTrials is the maximum number of suggestions, 0 if unknown. It only
	// determines Population.
	MaxTrials int
	// Index of the polynomial mutation of numbers, from 0: the larger, the
	// closer a child is to its parent. With 3, the median step is 16 percent of
	// the way to the bound.
	Index float64
}

// DefaultEvolutionConfig returns the configuration of "regularized-evolution".
func DefaultEvolutionConfig() EvolutionConfig { return EvolutionConfig{Index: 3} }

func (c EvolutionConfig) complete() (EvolutionConfig, error) {
	if c.Population == 0 {
		c.Population = 100
		if c.MaxTrials > 0 {
			c.Population = max(10, min(100, c.MaxTrials/5))
		}
	}
	if c.Sample == 0 {
		c.Sample = max(2, c.Population/4)
	}
	switch {
	case c.Population < 2:
		return c, fmt.Errorf("population is %d: want at least 2", c.Population)
	case c.Sample < 1 || c.Sample > c.Population:
		return c, fmt.Errorf("sample is %d: want from 1 to the population, %d", c.Sample, c.Population)
	case !(c.Index >= 0):
		return c, fmt.Errorf("index is %v: want from 0", c.Index)
	}
	return c, nil
}

// NewEvolution returns the sampler by regularized evolution (E. Real,
// A. Aggarwal, Y. Huang and Q. V. Le, "Regularized evolution for image
// classifier architecture search", 2019): the best of a few random members of
// a population becomes a parent, and its child differs from it in one
// parameter. The population is the newest trials that have a value, so that a
// trial dies of age and not of being bad, and one that was lucky in a noisy
// objective does not stay forever.
//
// It works on any space, and suits those with many categories and conditions,
// such as architectures. It never waits: a pending trial is simply not a
// parent yet. With several objectives, less dominated trials win.
func NewEvolution(space *Space, seed uint64, c EvolutionConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	return evolution{seed: seed, config: c}, nil
}

type evolution struct {
	seed   uint64
	config EvolutionConfig
}

func (e evolution) Sample(ctx context.Context, h *History) (Point, error) {
	numbers := random.New(e.seed, uint64(h.Len()))
	population := e.population(h)
	p, err := novel(h, draws, func() Point {
		if h.Len()+len(h.known) < e.config.Population || len(population) == 0 {
			return randomPoint(h.space, numbers)
		}
		return e.child(h, population, numbers)
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// population returns the newest trials that have values, known results being
// the oldest.
func (e evolution) population(h *History) []Trial {
	population := make([]Trial, 0, e.config.Population)
	for _, trials := range [][]Trial{h.trials, h.known} {
		for _, t := range slices.Backward(trials) {
			if len(population) == e.config.Population {
				return population
			}
			if len(t.Values) > 0 {
				population = append(population, t)
			}
		}
	}
	return population
}

// child returns a mutation of the best of a few members of the population.
func (e evolution) child(h *History, population []Trial, numbers *random.Stream) Point {
	sample := make([]Trial, 0, e.config.Sample)
	for range e.config.Sample {
		sample = append(sample, population[numbers.Uint64()%uint64(len(population))])
	}
	losses, violations := make([][]float64, len(sample)), make([]float64, len(sample))
	for i, t := range sample {
		losses[i], violations[i] = h.losses(t), t.Violation()
	}
	parent := sample[genetic.Fittest(losses, violations)].Point
	u := inherit(parent, numbers)
	if axes := activeAxes(parent); len(axes) > 0 {
		mutate(h.space, u, axes[numbers.Uint64()%uint64(len(axes))], e.config.Index, numbers)
	}
	return h.space.Quantile(u)
}

// inherit returns the coordinates in the unit cube that a child of a point
// begins with. A parameter that the parent does not have gets a random one, as
// the child may have it.
func inherit(parent Point, numbers *random.Stream) []float64 {
	u := parent.space.Unit(parent)
	for i := range u {
		if fresh := numbers.Float(); math.IsNaN(u[i]) {
			u[i] = fresh
		}
	}
	return u
}

// mutate changes coordinate i of u. A category becomes another one; any other
// value moves by polynomial mutation with a distribution index, but by at least a
// step.
func mutate(s *Space, u []float64, i int, index float64, numbers *random.Stream) {
	a := &s.axes[i]
	if a.count == 1 {
		return
	}
	if a.Kind == KindCategorical {
		u[i] = genetic.OtherCell(u[i], a.count, numbers)
		return
	}
	before := a.quantile(u[i])
	up := numbers.Uint64()>>63 == 1
	moved := genetic.Polynomial(u[i], index, up, numbers.Float())
	if a.count > 0 && a.quantile(moved) == before {
		moved = a.unit(a.beside(before, up))
	}
	u[i] = moved
}

// activeAxes returns the axes that a point has a value of, and that have more
// than one.
func activeAxes(p Point) (axes []int) {
	for i, at := range p.at {
		if !math.IsNaN(at) && p.space.axes[i].count != 1 {
			axes = append(axes, i)
		}
	}
	return axes
}

func evolutionAlgorithm() maker {
	const population, sample = "population_size", "sample_size"
	return maker{settings: []string{randomState, population, sample}, build: func(s *settings.Reader, p Problem) (Sampler, error) {
		c := DefaultEvolutionConfig()
		c.MaxTrials = p.Budget.MaxTrials
		c.Population = s.Int(population, 0, settings.UpTo(2, mostPopulation))
		c.Sample = s.Int(sample, 0, settings.UpTo(1, mostPopulation))
		return NewEvolution(p.Space, p.Seed, c)
	}}
}
