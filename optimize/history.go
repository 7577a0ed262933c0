// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// Trial is a suggestion and its result.
type Trial struct {
	Index int   // -1 for a known result, which was not suggested
	Point Point // the zero Point where the state is Lost
	Result
}

// History is the state of a search: its suggestions, by index from 0, and
// their results. It is not safe for concurrent use.
type History struct {
	space      *Space
	directions []Direction
	trials     []Trial
	known      []Trial
	told       []int
	seen       map[string]struct{} // keys of points
	distinct   int                 // how many of the points seen satisfy the constraints
	best       int                 // index of the best feasible trial, -1 for none
}

// NewHistory returns the history of a search that has not begun, with a
// direction for each objective; none is one objective that is minimized.
func NewHistory(space *Space, directions ...Direction) *History {
	if len(directions) == 0 {
		directions = []Direction{Minimize}
	}
	return &History{space: space, directions: slices.Clone(directions), seen: map[string]struct{}{}, best: -1}
}

// Space returns the space that is searched.
func (h *History) Space() *Space { return h.space }

// Directions returns which values of each objective are better.
func (h *History) Directions() []Direction { return slices.Clone(h.directions) }

// Direction returns which values of the first objective are better.
func (h *History) Direction() Direction { return h.directions[0] }

// Len returns the number of suggestions, which is the index of the next.
func (h *History) Len() int { return len(h.trials) }

// Trial returns the suggestion with an index below Len.
func (h *History) Trial(index int) Trial { return h.trials[index] }

// Told returns the indexes of the suggestions with a result, in the order in
// which results were told, so that a sampler with a cache can see what is new.
// It only grows; the caller must not modify it.
func (h *History) Told() []int { return h.told }

// Known returns the results from elsewhere, in the order in which they were
// added. It only grows; the caller does not change it.
func (h *History) Known() []Trial { return h.known }

// Best returns the complete and feasible trial with the best value of the
// first objective, the earliest of several.
func (h *History) Best() (Trial, bool) {
	if h.best < 0 {
		return Trial{}, false
	}
	return h.trials[h.best], true
}

// Contains reports whether a point was suggested.
func (h *History) Contains(p Point) bool {
	_, ok := h.seen[p.key()]
	return ok
}

// Distinct returns how many different points were suggested, not counting
// those that violate constraints of the space, as a user's own may.
func (h *History) Distinct() int { return h.distinct }

// Add appends a suggestion, pending, and returns its index.
func (h *History) Add(p Point) int {
	h.check(p)
	h.trials = append(h.trials, Trial{Index: len(h.trials), Point: p})
	key := p.key()
	if _, ok := h.seen[key]; !ok {
		h.seen[key] = struct{}{}
		if h.space.Feasible(p) {
			h.distinct++
		}
	}
	return len(h.trials) - 1
}

// AddLost appends a suggestion of which nothing is known any more, and returns
// its index. It keeps later indexes right.
func (h *History) AddLost() int {
	h.trials = append(h.trials, Trial{Index: len(h.trials), Result: Result{State: Lost}})
	return len(h.trials) - 1
}

// AddKnown adds a result from elsewhere, such as an earlier search. It counts
// as no suggestion and has no index; samplers learn from it.
func (h *History) AddKnown(p Point, r Result) error {
	h.check(p)
	r, err := r.checked(len(h.directions))
	if err != nil {
		return fmt.Errorf("cannot add known result: %w", err)
	}
	h.known = append(h.known, Trial{Index: -1, Point: p, Result: r})
	return nil
}

func (h *History) check(p Point) {
	if p.space == nil || h.space.check() != nil || &p.space.axes[0] != &h.space.axes[0] {
		panic("optimize: point of another space")
	}
}

// Tell records the result of a pending suggestion. A complete result with a
// non-finite value is recorded as failed. A suggestion has one result: telling
// the same again changes nothing, telling another is an error.
func (h *History) Tell(index int, r Result) error {
	if index < 0 || index >= len(h.trials) {
		return fmt.Errorf("cannot tell result of suggestion %d: there are %d suggestions, numbered from 0", index, len(h.trials))
	}
	r, err := r.checked(len(h.directions))
	if err != nil {
		return fmt.Errorf("cannot tell result of suggestion %d: %w", index, err)
	}
	t := &h.trials[index]
	switch {
	case t.Result.equal(r):
		return nil
	case t.State != Pending:
		return fmt.Errorf("cannot tell result of suggestion %d: it already has one", index)
	}
	t.Result = r
	h.told = append(h.told, index)
	if t.Complete() && t.Feasible() && h.beats(*t) {
		h.best = index
	}
	return nil
}

// beats reports whether a complete trial is the best, the earliest of equals,
// whatever the order in which results are told.
func (h *History) beats(t Trial) bool {
	if h.best < 0 {
		return true
	}
	best := h.trials[h.best]
	return h.Direction().Better(t.Value(), best.Value()) || t.Value() == best.Value() && t.Index < best.Index
}

// Pareto returns the complete and feasible trials that no other dominates, by
// index: none is at least as good in all objectives and better in one. For one
// objective these are the best.
func (h *History) Pareto() []Trial {
	var trials []Trial
	var losses [][]float64
	for _, t := range h.trials {
		if t.Complete() && t.Feasible() {
			trials, losses = append(trials, t), append(losses, h.losses(t))
		}
	}
	var front []Trial
	for i, rank := range pareto.Fronts(losses) {
		if rank == 0 {
			front = append(front, trials[i])
		}
	}
	return front
}

// losses returns the values of a trial, each turned so that less is better.
func (h *History) losses(t Trial) []float64 {
	losses := slices.Clone(t.Values)
	for i := range losses {
		losses[i] = h.directions[i].loss(losses[i])
	}
	return losses
}

// compare orders trials that have values from the best to the worst by the
// first objective, those that violate constraints after all others.
func (h *History) compare(a, b Trial) int {
	return cmp.Or(
		cmp.Compare(a.Violation(), b.Violation()),
		cmp.Compare(h.Direction().loss(a.Value()), h.Direction().loss(b.Value())),
	)
}

// withValues returns those of some trials that have values.
func withValues(trials []Trial) (kept []Trial) {
	for _, t := range trials {
		if len(t.Values) > 0 {
			kept = append(kept, t)
		}
	}
	return kept
}
