// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
	"diwan.dev/diwan/optimize/internal/random"
)

// EvolutionConfig says how [NewEvolution] searches.
type EvolutionConfig struct {
	// Population is how many of the newest trials may become parents, from 2.
	// So many points are drawn at random first. 0 chooses a fifth of MaxTrials,
	// but at least 10 and at most 100: Real et al. use 100 for 20,000 trials.
	Population int
	// Sample is how many of the population compete to be the parent, from 1 to
	// Population. 0 chooses a quarter of the population, as Real et al. do.
	Sample int
	// MaxTrials is how many suggestions there may be, 0 where it is not known.
	// It decides Population alone.
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

// NewEvolution returns the sampler by regularised evolution (E. Real,
// A. Aggarwal, Y. Huang and Q. V. Le, "Regularized evolution for image
// classifier architecture search", 2019): the best of a few random members of
// a population becomes a parent, and its child differs from it in one
// parameter. The population is the newest trials that have a value, so that a
// trial dies of age and not of being bad, and one that was lucky in a noisy
// objective does not stay for ever.
//
// It works on any space, and suits those of many categories and conditions, as
// architectures are. It never waits: a pending trial is simply no parent yet.
// Of several objectives, those compete that fewer others dominate.
func NewEvolution(space *Space, seed uint64, c EvolutionConfig) (Sampler, error) {
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
	parent := sample[fittest(h, sample)].Point
	u := inherit(parent, numbers)
	if axes := activeAxes(parent); len(axes) > 0 {
		mutate(h.space, u, axes[numbers.Uint64()%uint64(len(axes))], e.config.Index, numbers)
	}
	return h.space.Quantile(u)
}

// fittest returns the index of the first of some trials that no other beats:
// by constraints, then by objectives, then by how alone it is among equals.
func fittest(h *History, trials []Trial) int {
	losses, violations := make([][]float64, len(trials)), make([]float64, len(trials))
	for i, t := range trials {
		losses[i], violations[i] = h.losses(t), t.Violation()
	}
	ranks, crowding := standing(losses, violations)
	best := 0
	for i := range trials {
		if ranks[i] < ranks[best] || ranks[i] == ranks[best] && crowding[i] > crowding[best] {
			best = i
		}
	}
	return best
}

// standing returns the rank of each trial among the others by constrained
// domination, and its crowding distance among those of the same rank (K. Deb
// et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", 2002).
func standing(losses [][]float64, violations []float64) (ranks []int, crowding []float64) {
	ranks, crowding = pareto.ConstrainedFronts(losses, violations), make([]float64, len(losses))
	fronts := make(map[int][]int)
	for i, rank := range ranks {
		fronts[rank] = append(fronts[rank], i)
	}
	for _, front := range fronts {
		rows := make([][]float64, len(front))
		for k, i := range front {
			rows[k] = losses[i]
		}
		for k, distance := range pareto.Crowding(rows) {
			crowding[front[k]] = distance
		}
	}
	return ranks, crowding
}

// randomPoint draws a point from the distributions of its parameters.
func randomPoint(s *Space, numbers *random.Stream) Point {
	u := make([]float64, s.Len())
	for i := range u {
		u[i] = numbers.Float()
	}
	return s.Quantile(u)
}

func evolutionAlgorithm() maker {
	const population, sample = "population_size", "sample_size"
	return maker{settings: []string{randomState, population, sample}, build: func(s *settings, p Problem) (Sampler, error) {
		c := DefaultEvolutionConfig()
		c.MaxTrials = p.Budget.MaxTrials
		c.Population = s.int(population, 0, atLeast(2))
		c.Sample = s.int(sample, 0, atLeast(1))
		return NewEvolution(p.Space, p.Seed, c)
	}}
}
