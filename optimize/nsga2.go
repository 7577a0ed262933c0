// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"sync"

	"diwan.dev/diwan/optimize/internal/genetic"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// NSGA2Config configures [NewNSGA2].
type NSGA2Config struct {
	// Population is how many trials may become parents, from 2. So many points
	// are drawn at random first.
	Population int
	// Crossover is the probability, from 0 to 1, that a child has two parents.
	Crossover float64
	// Swapping is the probability, from 0 to 1, that a child of two parents has
	// a parameter of both or of the second.
	Swapping float64
	// Mutation is the probability, from 0 to 1, that a parameter of a child
	// mutates. Less than 0 is one in as many as the space has parameters.
	Mutation float64
	// CrossoverIndex and MutationIndex are the distribution indices of
	// simulated binary crossover and polynomial mutation, from 0: the larger,
	// the closer a child is to its parents. Deb's are 20, for many thousands
	// of evaluations; smaller ones get there earlier.
	CrossoverIndex, MutationIndex float64
}

// DefaultNSGA2Config returns the configuration of "nsga2", which is Optuna's
// where it has one.
func DefaultNSGA2Config() NSGA2Config {
	return NSGA2Config{Population: 50, Crossover: 0.9, Swapping: 0.5, Mutation: -1, CrossoverIndex: 2, MutationIndex: 5}
}

func (c NSGA2Config) check() error {
	switch {
	case c.Population < 2:
		return fmt.Errorf("population is %d: want at least 2", c.Population)
	case !(c.Crossover >= 0 && c.Crossover <= 1):
		return fmt.Errorf("crossover is %v: want from 0 to 1", c.Crossover)
	case !(c.Swapping >= 0 && c.Swapping <= 1):
		return fmt.Errorf("swapping is %v: want from 0 to 1", c.Swapping)
	case !(c.Mutation <= 1):
		return fmt.Errorf("mutation is %v: want at most 1", c.Mutation)
	case !(c.CrossoverIndex >= 0) || !(c.MutationIndex >= 0):
		return fmt.Errorf("indices are %v and %v: want from 0", c.CrossoverIndex, c.MutationIndex)
	}
	return nil
}

// NewNSGA2 returns the sampler by the elitist genetic algorithm NSGA-II (K. Deb,
// A. Pratap, S. Agarwal and T. Meyarivan, 2002) for one objective or several.
//
// The population is the best trials so far: those that satisfy the outcome
// constraints or violate them least, then less dominated ones, then those with a
// larger crowding distance. Two parents, each the better of two random members,
// have one child. It is bred from what is known at the time (J. J. Durillo et
// al., "On the effect of the steady-state selection scheme in multi-objective
// genetic algorithms", 2009), so that it never waits for a generation to end.
func NewNSGA2(space *Space, seed uint64, c NSGA2Config) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Mutation < 0 {
		c.Mutation = 1 / float64(space.Len())
	}
	return &nsga2{seed: seed, config: c}, nil
}

type nsga2 struct {
	seed   uint64
	config NSGA2Config

	mu      sync.Mutex
	history *History // that the elite is of
	told    int
	known   int
	elite   *genetic.Elite
}

func (n *nsga2) Sample(ctx context.Context, h *History) (Point, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.follow(h)
	numbers := random.New(n.seed, uint64(h.Len()))
	p, err := novel(h, draws, func() Point {
		if h.Len()+len(h.known) < n.config.Population || n.elite.Len() < 2 {
			return randomPoint(h.space, numbers)
		}
		return n.child(h.space, numbers)
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

func (n *nsga2) child(s *Space, numbers *random.Stream) Point {
	u := inherit(n.parent(numbers), numbers)
	if numbers.Float() < n.config.Crossover {
		whole := func(i int) bool { return s.axes[i].Kind == KindCategorical || s.axes[i].count == 2 }
		u = genetic.Crossover(u, inherit(n.parent(numbers), numbers), whole, n.config.Swapping, n.config.CrossoverIndex, numbers)
	}
	for i := range u {
		if numbers.Float() < n.config.Mutation {
			mutate(s, u, i, n.config.MutationIndex, numbers)
		}
	}
	return s.Quantile(u)
}

// follow brings the elite up to date. Known results come before the trials, by
// negative IDs.
func (n *nsga2) follow(h *History) {
	var trials []genetic.Member
	add := func(id int, t Trial) {
		if len(t.Values) > 0 {
			trials = append(trials, genetic.Member{ID: id, Losses: h.losses(t), Violation: t.Violation()})
		}
	}
	if n.history != h || n.known != len(h.known) {
		n.history, n.told, n.known, n.elite = h, 0, len(h.known), genetic.NewElite(n.config.Population)
		for k, t := range h.known {
			add(k-len(h.known), t)
		}
	}
	for ; n.told < len(h.told); n.told++ {
		i := h.told[n.told]
		add(i, h.trials[i])
	}
	if len(trials) > 0 {
		n.elite.Add(trials...)
	}
}

// parent returns a member of the elite.
func (n *nsga2) parent(numbers *random.Stream) Point {
	id := n.elite.Tournament(numbers)
	if id < 0 {
		return n.history.known[n.known+id].Point
	}
	return n.history.trials[id].Point
}

func nsga2Algorithm() maker {
	const population, crossover, swapping, mutation = "population_size", "crossover_probability", "swapping_probability", "mutation_probability"
	return maker{settings: []string{randomState, population, crossover, swapping, mutation}, build: func(s *settings.Reader, p Problem) (Sampler, error) {
		c := DefaultNSGA2Config()
		c.Population = s.Int(population, c.Population, settings.UpTo(2, mostPopulation))
		c.Crossover = s.Float(crossover, c.Crossover, settings.UnitInterval)
		c.Swapping = s.Float(swapping, c.Swapping, settings.UnitInterval)
		c.Mutation = s.Float(mutation, c.Mutation, settings.UnitInterval)
		return NewNSGA2(p.Space, p.Seed, c)
	}}
}
