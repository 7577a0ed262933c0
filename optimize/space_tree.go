// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// connect finds the parent of each axis, and puts parents before children.
func (s *Space) connect() (problems []error) {
	s.children = make([][]int, len(s.axes))
	for i := range s.axes {
		if err := s.adopt(i); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return problems
	}
	s.order = slices.Clone(s.roots)
	for n := 0; n < len(s.order); n++ {
		s.order = append(s.order, s.children[s.order[n]]...)
	}
	for i := range s.axes {
		if !slices.Contains(s.order, i) {
			problems = append(problems, fmt.Errorf("parameter %q: it depends on itself by way of %q", s.axes[i].Name, s.axes[i].Parent))
		}
	}
	return problems
}

// adopt makes axis i a child of its parent, or a root.
func (s *Space) adopt(i int) error {
	a := &s.axes[i]
	if a.Parent == "" {
		s.roots = append(s.roots, i)
		return nil
	}
	parent, ok := s.byName[a.Parent]
	if !ok {
		return fmt.Errorf("parameter %q: it depends on %q, which is not in the space", a.Name, a.Parent)
	}
	if s.axes[parent].count == 0 {
		return fmt.Errorf("parameter %q: it depends on %q, which has no end to its values: want a list, an int or a step", a.Name, a.Parent)
	}
	for _, text := range a.Where {
		value, err := s.axes[parent].parse(text)
		if err != nil {
			return fmt.Errorf("parameter %q depends on another: %w", a.Name, err)
		}
		a.where = append(a.where, value)
	}
	slices.Sort(a.where)
	a.where = slices.Compact(a.where)
	a.parent = parent
	s.children[parent] = append(s.children[parent], i)
	return nil
}

// count computes how many points the space has.
func (s *Space) count() {
	s.counts = make([]uint64, len(s.axes))
	for _, i := range slices.Backward(s.order) {
		s.counts[i] = s.countAxis(i)
	}
	s.size = 1
	for _, i := range s.roots {
		s.size = multiply(s.size, s.counts[i])
	}
}

// countAxis returns how many combinations axis i has with its children.
func (s *Space) countAxis(i int) uint64 {
	branching := s.branching(i)
	n := s.axes[i].count - uint64(len(branching))
	if s.axes[i].count == 0 {
		return 0
	}
	for _, at := range branching {
		if n = add(n, s.combinations(i, at)); n == 0 {
			return 0
		}
	}
	return n
}

// branching returns the coordinates of axis i, sorted, at which it has
// children.
func (s *Space) branching(i int) (coordinates []float64) {
	for _, child := range s.children[i] {
		coordinates = append(coordinates, s.axes[child].where...)
	}
	slices.Sort(coordinates)
	return slices.Compact(coordinates)
}

// combinations returns how many combinations the children of axis i have where
// it has a coordinate.
func (s *Space) combinations(i int, at float64) uint64 {
	n := uint64(1)
	for _, child := range s.childrenAt(i, at) {
		n = multiply(n, s.counts[child])
	}
	return n
}

func (s *Space) childrenAt(i int, at float64) (children []int) {
	for _, child := range s.children[i] {
		if _, ok := slices.BinarySearch(s.axes[child].where, at); ok {
			children = append(children, child)
		}
	}
	return children
}

// multiply returns 0 where the product is 0 or too large to count with.
func multiply(a, b uint64) uint64 {
	if hi, lo := bits.Mul64(a, b); hi == 0 && lo <= math.MaxInt64 {
		return lo
	}
	return 0
}

// add returns 0 where b is 0 or the sum is too large to count with.
func add(a, b uint64) uint64 {
	if b == 0 || a+b > math.MaxInt64 {
		return 0
	}
	return a + b
}

// Size returns how many points the space has. finite is false when there is no
// end to them, they are more than 2⁶³, or there are constraints and too many
// points to try each; then n is 0.
func (s *Space) Size() (n uint64, finite bool) {
	if s.ranks != nil {
		return uint64(len(s.ranks)), true
	}
	if len(s.constraints) > 0 {
		return 0, false
	}
	return s.size, s.size > 0
}

// At returns the point at rank n of a finite space with more than n points.
// Points are ranked as a nested loop visits them, the last parameter changing
// fastest, and the parameters that depend on another within that.
func (s *Space) At(n uint64) Point {
	if size, _ := s.Size(); n >= size {
		panic(fmt.Sprintf("optimize: rank %d in a space of %d points", n, size))
	}
	if s.ranks != nil {
		n = s.ranks[n]
	}
	p := s.point()
	s.place(p, s.roots, n)
	return p
}

// place gives a point the values of some axes, and of those that depend on
// them, at a rank of their combinations.
func (s *Space) place(p Point, axes []int, n uint64) {
	for _, i := range slices.Backward(axes) {
		digit := n % s.counts[i]
		n /= s.counts[i]
		at, rest := s.locate(i, digit)
		p.at[i] = at
		s.place(p, s.childrenAt(i, at), rest)
	}
}

// locate returns the coordinate of axis i at a rank of the combinations of it
// and its children, and the rank that is left for the children.
func (s *Space) locate(i int, n uint64) (at float64, rest uint64) {
	a, next := &s.axes[i], uint64(0)
	for _, branch := range s.branching(i) {
		plain := a.index(branch) - next // values before it have no children
		if n < plain {
			break
		}
		n -= plain
		combinations := s.combinations(i, branch)
		if n < combinations {
			return branch, n
		}
		n -= combinations
		next += plain + 1
	}
	return a.coordinate(next + n), 0
}

// Rank returns the rank of a point of a finite space: the n for which At
// returns it. Under constraints the point has to satisfy them.
func (s *Space) Rank(p Point) uint64 {
	n := s.rankOf(p, s.roots)
	if s.ranks == nil {
		return n
	}
	i, _ := slices.BinarySearch(s.ranks, n)
	return uint64(i)
}

func (s *Space) rankOf(p Point, axes []int) (n uint64) {
	for _, i := range axes {
		n = n*s.counts[i] + s.rankOfAxis(p, i)
	}
	return n
}

func (s *Space) rankOfAxis(p Point, i int) uint64 {
	at := p.at[i]
	n := s.axes[i].index(at)
	for _, branch := range s.branching(i) {
		if branch >= at {
			break
		}
		n += s.combinations(i, branch) - 1
	}
	return n + s.rankOf(p, s.childrenAt(i, at))
}
