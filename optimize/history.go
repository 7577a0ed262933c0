// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"math"
)

// Direction says which values of the objective are better.
type Direction int

// The directions.
const (
	Minimize Direction = iota
	Maximize
)

// Better reports whether objective a is better than b.
func (d Direction) Better(a, b float64) bool {
	if d == Maximize {
		return a > b
	}
	return a < b
}

// State says what became of a suggestion.
type State int

// The states of a suggestion.
const (
	// Pending is a suggestion without a result yet.
	Pending State = iota
	// Complete is one with a value of the objective.
	Complete
	// Failed is one that ended without a value, or with one that is not a
	// number.
	Failed
	// Lost is one of which nothing is known but that there was one.
	Lost
)

// Result is what came of a suggestion.
type Result struct {
	State State
	// Value is the objective's, where State is Complete.
	Value float64
}

// Trial is a suggestion and what came of it.
type Trial struct {
	Index int
	Point Point // the zero Point where the state is Lost
	Result
}

// History is what is known of a search: its suggestions, by index from 0, and
// what came of them. It is not safe for several goroutines at once.
type History struct {
	space     *Space
	direction Direction
	trials    []Trial
	seen      map[string]struct{} // keys of points
	best      int                 // index of the best complete trial, -1 for none
}

// NewHistory returns the history of a search that has not begun.
func NewHistory(space *Space, direction Direction) *History {
	return &History{space: space, direction: direction, seen: map[string]struct{}{}, best: -1}
}

// Space returns the space that is searched.
func (h *History) Space() *Space { return h.space }

// Direction returns which values of the objective are better.
func (h *History) Direction() Direction { return h.direction }

// Len returns the number of suggestions, which is the index of the next.
func (h *History) Len() int { return len(h.trials) }

// Trial returns the suggestion with an index below Len.
func (h *History) Trial(index int) Trial { return h.trials[index] }

// Best returns the complete trial with the best value, the earliest of several.
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

// Distinct returns how many different points were suggested.
func (h *History) Distinct() int { return len(h.seen) }

// Add appends a suggestion, pending, and returns its index.
func (h *History) Add(p Point) int {
	if p.space != h.space {
		panic("optimize: point of another space")
	}
	h.trials = append(h.trials, Trial{Index: len(h.trials), Point: p})
	h.seen[p.key()] = struct{}{}
	return len(h.trials) - 1
}

// AddLost appends a suggestion of which nothing is known any more, and returns
// its index. It keeps the indices of those after it right.
func (h *History) AddLost() int {
	h.trials = append(h.trials, Trial{Index: len(h.trials), Result: Result{State: Lost}})
	return len(h.trials) - 1
}

// Tell records what came of a pending suggestion. A complete result whose
// value is not a number is recorded as failed. A suggestion has one result:
// telling the same again changes nothing, telling another is an error.
func (h *History) Tell(index int, r Result) error {
	if index < 0 || index >= len(h.trials) {
		return fmt.Errorf("cannot tell result of suggestion %d: there are %d suggestions, counted from 0", index, len(h.trials))
	}
	switch {
	case r.State == Complete && math.IsNaN(r.Value):
		r = Result{State: Failed}
	case r.State == Failed:
		r.Value = 0
	case r.State != Complete:
		return fmt.Errorf("cannot tell result of suggestion %d: want one that is complete or failed", index)
	}
	t := &h.trials[index]
	switch {
	case t.Result == r:
		return nil
	case t.State != Pending:
		return fmt.Errorf("cannot tell result of suggestion %d: it has one already", index)
	}
	t.Result = r
	if r.State == Complete && h.beats(*t) {
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
	return h.direction.Better(t.Value, best.Value) || t.Value == best.Value && t.Index < best.Index
}
