// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// Constraint is a condition on the parameters of a point that is known before
// the point is tried.
type Constraint struct {
	// Name describes the constraint, such as "batch ≤ samples"; errors use
	// it.
	Name string
	// Holds reports whether a point satisfies the constraint. It is a pure
	// function, and may be called by several goroutines at once.
	Holds func(Point) bool
}

const (
	// enumerable is the greatest number of points of a space that are all
	// tried to find those that satisfy its constraints: a second's work.
	enumerable = 1 << 20
	// searched is how many random points are tried for one that satisfies the
	// constraints of a larger space.
	searched = 100_000
)

// ErrInfeasible is wrapped by errors about constraints that no point was found
// to satisfy.
var ErrInfeasible = errors.New("no point satisfies the constraints")

// Constrained returns the space of those points of s that satisfy some
// constraints too. It fails with [ErrInfeasible] when there are none; in a
// space of more than 2²⁰ points, when none is among 100,000 random ones.
func (s *Space) Constrained(constraints ...Constraint) (*Space, error) {
	constrained := *s
	constrained.constraints = slices.Concat(s.constraints, constraints)
	constrained.ranks = nil
	for _, c := range constraints {
		if c.Holds == nil {
			return nil, fmt.Errorf("constraint %q has no function", c.Name)
		}
	}
	if s.size > 0 && s.size <= enumerable {
		for n := range s.size {
			p := constrained.point()
			constrained.place(p, s.roots, n)
			if constrained.Feasible(p) {
				constrained.ranks = append(constrained.ranks, n)
			}
		}
		if len(constrained.ranks) == 0 {
			return nil, fmt.Errorf("cannot constrain space of %d points: %w%s", s.size, ErrInfeasible, constrained.blame())
		}
		return &constrained, nil
	}
	if _, ok := constrained.draw(random.New(0, 0), searched, constrained.Feasible); !ok {
		return nil, fmt.Errorf("cannot constrain space: of %d random points, %w%s", searched, ErrInfeasible, constrained.blame())
	}
	return &constrained, nil
}

// blame names the constraints that no random point satisfies.
func (s *Space) blame() string {
	for _, c := range s.constraints {
		if _, ok := s.draw(random.New(0, 1), 1000, c.Holds); !ok {
			return fmt.Sprintf(": %q alone excludes nearly all of them", c.Name)
		}
	}
	return ", although each of them can be satisfied alone"
}

// Feasible reports whether a point satisfies all constraints of the space.
func (s *Space) Feasible(p Point) bool {
	for _, c := range s.constraints {
		if !c.Holds(p) {
			return false
		}
	}
	return true
}

// draw returns the first of some random points that is wanted.
func (s *Space) draw(numbers *random.Stream, attempts int, wanted func(Point) bool) (Point, bool) {
	u := make([]float64, len(s.axes))
	for range attempts {
		for i := range u {
			u[i] = numbers.Float()
		}
		if p := s.Quantile(u); wanted(p) {
			return p, true
		}
	}
	return Point{}, false
}
