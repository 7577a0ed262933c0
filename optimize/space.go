// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Space is a list of parameters. It does not change, and may be used by
// several goroutines at once.
type Space struct {
	axes   []axis
	byName map[string]int
	size   uint64 // 0 when there is no end to its points
}

// NewSpace returns the space of some parameters: at least one, each valid and
// with a name of its own. Its error names each parameter that is not.
func NewSpace(parameters ...Parameter) (*Space, error) {
	s := &Space{byName: make(map[string]int, len(parameters)), size: 1}
	var problems []error
	for i, p := range parameters {
		if err := p.Validate(); err != nil {
			problems = append(problems, err)
			continue
		}
		if _, ok := s.byName[p.Name]; ok {
			problems = append(problems, fmt.Errorf("parameter %q: name is used twice", p.Name))
			continue
		}
		s.byName[p.Name] = i
		s.axes = append(s.axes, newAxis(p))
	}
	if len(parameters) == 0 {
		problems = append(problems, errors.New("space has no parameters"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	for i := range s.axes {
		s.size = multiply(s.size, s.axes[i].count)
	}
	return s, nil
}

// multiply returns 0 where the product is 0 or too large to count with.
func multiply(a, b uint64) uint64 {
	if hi, lo := bits.Mul64(a, b); hi == 0 && lo <= math.MaxInt64 {
		return lo
	}
	return 0
}

// Len returns how many parameters the space has.
func (s *Space) Len() int { return len(s.axes) }

// Parameter returns the parameter with index i.
func (s *Space) Parameter(i int) Parameter { return s.axes[i].Parameter }

// Size returns how many points the space has. finite is false when there is no
// end to them or they are more than 2⁶³; then n is 0.
func (s *Space) Size() (n uint64, finite bool) { return s.size, s.size > 0 }

// At returns the point at rank n of a finite space with more than n points.
// Points are ranked as a nested loop visits them, the last parameter changing
// fastest.
func (s *Space) At(n uint64) Point {
	if n >= s.size {
		panic(fmt.Sprintf("optimize: rank %d in a space of %d points", n, s.size))
	}
	p := s.point()
	for i := len(s.axes) - 1; i >= 0; i-- {
		a := &s.axes[i]
		p.at[i] = a.coordinate(n % a.count)
		n /= a.count
	}
	return p
}

// Rank returns the rank of a point of a finite space: the n for which At
// returns it.
func (s *Space) Rank(p Point) uint64 {
	var n uint64
	for i := range s.axes {
		n = n*s.axes[i].count + s.axes[i].index(p.at[i])
	}
	return n
}

// Quantile returns the point whose value of parameter i has the part u[i] of
// the parameter's distribution below it, for each u[i] from 0 to 1. Random
// numbers in u make it a random point.
func (s *Space) Quantile(u []float64) Point {
	p := s.point()
	for i := range s.axes {
		p.at[i] = s.axes[i].quantile(u[i])
	}
	return p
}

// Parse returns the point that some assignments name, one for each parameter,
// in any order.
func (s *Space) Parse(assignments []Assignment) (Point, error) {
	p := s.point()
	seen := make([]bool, len(s.axes))
	for _, each := range assignments {
		i, ok := s.byName[each.Name]
		switch {
		case !ok:
			return Point{}, fmt.Errorf("cannot parse point: parameter %q is not in the space", each.Name)
		case seen[i]:
			return Point{}, fmt.Errorf("cannot parse point: parameter %q is assigned twice", each.Name)
		}
		value, err := s.axes[i].parse(each.Value)
		if err != nil {
			return Point{}, fmt.Errorf("cannot parse point: %w", err)
		}
		p.at[i], seen[i] = value, true
	}
	for i, ok := range seen {
		if !ok {
			return Point{}, fmt.Errorf("cannot parse point: parameter %q has no value", s.axes[i].Name)
		}
	}
	return p, nil
}

func (s *Space) point() Point {
	return Point{space: s, at: make([]float64, len(s.axes))}
}
