// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
	"diwan.dev/diwan/optimize/internal/random"
)

// Member is what counts of a trial.
type Member struct {
	// ID identifies the trial. Of equals the one with the least is first.
	ID int
	// Losses and Violation are as package pareto has them.
	Losses    []float64
	Violation float64
}

// Elite is the best of some trials: those that satisfy the outcome constraints or
// violate them least, then less dominated ones, then those with a larger crowding
// distance (K. Deb et al., "A fast and elitist multiobjective genetic algorithm:
// NSGA-II", 2002).
type Elite struct {
	size    int
	pool    []Member // those that may be members now or later
	pruned  int      // size of the pool when the others were dropped
	members []Member // from the best to the worst
}

// NewElite returns an elite of at most some size.
func NewElite(size int) *Elite { return &Elite{size: size} }

// Add adds trials. Their order does not matter.
func (e *Elite) Add(trials ...Member) {
	e.pool = append(e.pool, trials...)
	slices.SortFunc(e.pool, func(a, b Member) int { return a.ID - b.ID })
	e.choose()
}

// Len returns how many members there are.
func (e *Elite) Len() int { return len(e.members) }

// choose ranks the pool, and drops trials that can no longer become members.
func (e *Elite) choose() {
	losses, violations := make([][]float64, len(e.pool)), make([]float64, len(e.pool))
	for i, t := range e.pool {
		losses[i], violations[i] = t.Losses, t.Violation
	}
	ranks, crowding := pareto.Standing(losses, violations)
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
	for _, i := range order[:min(e.size, len(order))] {
		e.members = append(e.members, e.pool[i])
	}
	e.prune()
}

// prune drops trials that as many others as the elite has members dominate:
// these come before it whatever is added later.
func (e *Elite) prune() {
	if len(e.pool) < 2*max(e.size, e.pruned) {
		return
	}
	kept := e.pool[:0:0]
	for _, t := range e.pool {
		above := 0
		for _, other := range e.pool {
			if pareto.ConstrainedDominates(other.Losses, t.Losses, other.Violation, t.Violation) {
				above++
			}
		}
		if above < e.size {
			kept = append(kept, t)
		}
	}
	e.pool, e.pruned = kept, len(kept)
}

// Tournament returns the ID of the better of two random members.
func (e *Elite) Tournament(numbers *random.Stream) int {
	n := uint64(len(e.members))
	return e.members[min(numbers.Uint64()%n, numbers.Uint64()%n)].ID
}

// Fittest returns the index of the first of some trials that no other beats: by
// constraints, then by losses, then by crowding distance among equals.
func Fittest(losses [][]float64, violations []float64) int {
	ranks, crowding := pareto.Standing(losses, violations)
	best := 0
	for i := range losses {
		if ranks[i] < ranks[best] || ranks[i] == ranks[best] && crowding[i] > crowding[best] {
			best = i
		}
	}
	return best
}
