// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Space is a list of parameters. It does not change, and may be used by
// several goroutines at once.
type Space struct {
	axes        []axis
	byName      map[string]int
	order       []int   // axes, parents before their children
	children    [][]int // by axis: those that depend on it
	roots       []int
	counts      []uint64 // by axis: how many combinations it has with those that depend on it, 0 when there is no end to them
	size        uint64   // of the space, 0 when there is no end to its points
	constraints []Constraint
	ranks       []uint64 // of the feasible points, where there are constraints and few enough points
	shown       Presentation
}

// ErrNoSpace is the error of what needs a space and is given none, as happens
// where the error of [NewSpace] was not looked at.
var ErrNoSpace = errors.New("space is missing: create one with NewSpace, and check its error")

// check returns ErrNoSpace for a space that NewSpace did not make.
func (s *Space) check() error {
	if s == nil || len(s.axes) == 0 {
		return ErrNoSpace
	}
	return nil
}

// NewSpace returns the space of some parameters: at least one, each valid and
// with a unique name. Its error names each invalid parameter.
func NewSpace(parameters ...Parameter) (*Space, error) {
	s := &Space{byName: make(map[string]int, len(parameters))}
	var problems []error
	for _, p := range parameters {
		if err := p.Validate(); err != nil {
			problems = append(problems, err)
			continue
		}
		if _, ok := s.byName[p.Name]; ok {
			problems = append(problems, fmt.Errorf("parameter %q: name is used twice", p.Name))
			continue
		}
		s.byName[p.Name] = len(s.axes)
		s.axes = append(s.axes, newAxis(p))
	}
	if len(parameters) == 0 {
		problems = append(problems, errors.New("space has no parameters"))
	}
	if len(problems) == 0 {
		problems = s.connect()
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	s.count()
	return s, nil
}

// Len returns how many parameters the space has.
func (s *Space) Len() int { return len(s.axes) }

// Parameter returns the parameter with index i.
func (s *Space) Parameter(i int) Parameter { return s.axes[i].Parameter }

// Conditional reports whether a parameter depends on another.
func (s *Space) Conditional() bool { return len(s.roots) < len(s.axes) }

// Quantile returns the point whose value of parameter i has the part u[i] of
// the parameter's distribution below it, for each u[i] from 0 to 1. Random
// numbers in u make it a random point. The u of a parameter that the point
// does not have is ignored.
func (s *Space) Quantile(u []float64) Point {
	p := s.point()
	for _, i := range s.order {
		if s.active(i, p) {
			p.at[i] = s.axes[i].quantile(u[i])
		}
	}
	return p
}

// Unit returns where the values of a point are in the distributions of their
// parameters, from 0 to 1: the u for which Quantile returns the point, up to
// rounding. Of a value with a step or in a list it is the middle of those for
// which it does. It is not a number for a parameter that the point does not
// have.
func (s *Space) Unit(p Point) []float64 {
	u := make([]float64, len(s.axes))
	for i, at := range p.at {
		if u[i] = at; !math.IsNaN(at) {
			u[i] = s.axes[i].unit(at)
		}
	}
	return u
}

// Parse returns the point that some assignments name, one for each parameter
// that it has, in any order.
func (s *Space) Parse(assignments []Assignment) (Point, error) {
	if s.shown.Read != nil {
		plain, err := s.shown.Read(assignments)
		if err != nil {
			return Point{}, fmt.Errorf("cannot parse point: %w", err)
		}
		assignments = plain
	}
	return s.parse(assignments)
}

// parse returns the point that the plain assignments name, one for each
// parameter that it has.
func (s *Space) parse(assignments []Assignment) (Point, error) {
	p := s.point()
	for _, each := range assignments {
		i, ok := s.byName[each.Name]
		switch {
		case !ok:
			return Point{}, fmt.Errorf("cannot parse point: parameter %q is not in the space", each.Name)
		case !math.IsNaN(p.at[i]):
			return Point{}, fmt.Errorf("cannot parse point: parameter %q is assigned twice", each.Name)
		}
		value, err := s.axes[i].parse(each.Value)
		if err != nil {
			return Point{}, fmt.Errorf("cannot parse point: %w", err)
		}
		p.at[i] = value
	}
	for _, i := range s.order {
		a, given := &s.axes[i], !math.IsNaN(p.at[i])
		switch exists := s.active(i, p); {
		case exists && !given:
			return Point{}, fmt.Errorf("cannot parse point: parameter %q has no value", a.Name)
		case given && !exists:
			return Point{}, fmt.Errorf("cannot parse point: parameter %q has a value, but exists only where %q is one of %q", a.Name, a.Parent, a.Where)
		}
	}
	return p, nil
}

// point returns a point that has no value of any parameter yet.
func (s *Space) point() Point {
	p := Point{space: s, at: make([]float64, len(s.axes))}
	for i := range p.at {
		p.at[i] = math.NaN()
	}
	return p
}

// active reports whether a point with values for the parents of axis i has one
// for the axis.
func (s *Space) active(i int, p Point) bool {
	a := &s.axes[i]
	if a.parent < 0 {
		return true
	}
	_, ok := slices.BinarySearch(a.where, p.at[a.parent])
	return ok && !math.IsNaN(p.at[a.parent])
}
