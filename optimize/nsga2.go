// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/pareto"
	"diwan.dev/diwan/optimize/internal/random"
)

// NSGA2Config says how [NewNSGA2] searches.
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
// The population is the best trials of all so far: those that satisfy the
// constraints on outcomes or violate them least, then those that fewer others
// dominate, then those that are more alone on their front. Two parents, each
// the better of two random members, have one child. It is bred from what is
// known at the time (J. J. Durillo et al., "On the effect of the steady-state
// selection scheme in multi-objective genetic algorithms", 2009), so that it
// never waits for a generation to end.
func NewNSGA2(space *Space, seed uint64, c NSGA2Config) (Sampler, error) {
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

	mu    sync.Mutex
	elite elite
}

func (n *nsga2) Sample(ctx context.Context, h *History) (Point, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.elite.follow(h, n.config.Population)
	numbers := random.New(n.seed, uint64(h.Len()))
	p, err := novel(h, draws, func() Point {
		if h.Len()+len(h.known) < n.config.Population || len(n.elite.members) < 2 {
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
	parent := n.elite.tournament(numbers)
	u := inherit(parent, numbers)
	if numbers.Float() < n.config.Crossover {
		u = crossover(s, u, inherit(n.elite.tournament(numbers), numbers), n.config.Swapping, n.config.CrossoverIndex, numbers)
	}
	for i := range u {
		if numbers.Float() < n.config.Mutation {
			mutate(s, u, i, n.config.MutationIndex, numbers)
		}
	}
	return s.Quantile(u)
}

// elite is the best trials of a history, found anew when results are told.
type elite struct {
	history *History
	told    int
	known   int
	pool    []Trial // those that may be members now or later
	pruned  int     // size of the pool when the others were dropped
	members []Trial // from the best to the worst
}

// follow brings the elite up to date.
func (e *elite) follow(h *History, size int) {
	if e.history != h || len(h.known) != e.known {
		*e = elite{history: h, known: len(h.known), pool: withValues(h.known)}
	} else if len(h.told) == e.told {
		return
	}
	for ; e.told < len(h.told); e.told++ {
		if t := h.trials[h.told[e.told]]; len(t.Values) > 0 {
			e.pool = append(e.pool, t)
		}
	}
	// The order of telling must not matter.
	slices.SortStableFunc(e.pool, func(a, b Trial) int { return a.Index - b.Index })
	e.choose(h, size)
}

// choose ranks the pool, and drops what can never be a member any more.
func (e *elite) choose(h *History, size int) {
	losses, violations := make([][]float64, len(e.pool)), make([]float64, len(e.pool))
	for i, t := range e.pool {
		losses[i], violations[i] = h.losses(t), t.Violation()
	}
	ranks, crowding := standing(losses, violations)
	order := make([]int, len(e.pool))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ranks[a] != ranks[b]:
			return ranks[a] - ranks[b]
		case crowding[a] > crowding[b]:
			return -1
		case crowding[a] < crowding[b]:
			return 1
		}
		return 0
	})
	e.members = e.members[:0]
	for _, i := range order[:min(size, len(order))] {
		e.members = append(e.members, e.pool[i])
	}
	e.prune(losses, violations, size)
}

// prune drops trials that as many others as the elite has members dominate:
// these come before it whatever is told later.
func (e *elite) prune(losses [][]float64, violations []float64, size int) {
	if len(e.pool) < 2*max(size, e.pruned) {
		return
	}
	kept := e.pool[:0:0]
	for i, t := range e.pool {
		above := 0
		for j := range e.pool {
			if dominatesWithin(losses[j], losses[i], violations[j], violations[i]) {
				above++
			}
		}
		if above < size {
			kept = append(kept, t)
		}
	}
	e.pool, e.pruned = kept, len(kept)
}

// dominatesWithin is constrained domination.
func dominatesWithin(a, b []float64, violationA, violationB float64) bool {
	switch {
	case violationA == 0 && violationB == 0:
		return pareto.Dominates(a, b)
	case violationA == 0 || violationB == 0:
		return violationA == 0
	}
	return violationA < violationB
}

// tournament returns the better of two random members.
func (e *elite) tournament(numbers *random.Stream) Point {
	n := uint64(len(e.members))
	return e.members[min(numbers.Uint64()%n, numbers.Uint64()%n)].Point
}

func withValues(trials []Trial) (kept []Trial) {
	for _, t := range trials {
		if len(t.Values) > 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

func nsga2Algorithm() maker {
	const population, crossover, swapping, mutation = "population_size", "crossover_probability", "swapping_probability", "mutation_probability"
	return maker{settings: []string{randomState, population, crossover, swapping, mutation}, build: func(s *settings, p Problem) (Sampler, error) {
		c := DefaultNSGA2Config()
		c.Population = s.int(population, c.Population, atLeast(2))
		c.Crossover = s.float(crossover, c.Crossover, unitInterval)
		c.Swapping = s.float(swapping, c.Swapping, unitInterval)
		c.Mutation = s.float(mutation, c.Mutation, unitInterval)
		return NewNSGA2(p.Space, p.Seed, c)
	}}
}
