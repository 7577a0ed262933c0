// SPDX-License-Identifier: Apache-2.0

// Package lbfgs minimizes smooth functions within a box.
//
// It is the limited-memory quasi-Newton method of Nocedal (1980) on the
// variables that are free, with steps projected on the box and shortened until
// they descend enough (Bertsekas, "Projected Newton methods", 1982). A variable
// is held at its bound while the gradient pushes it outwards.
package lbfgs

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Config bounds the work.
type Config struct {
	// Iterations is how many steps are taken at most.
	Iterations int
	// Memory is how many past steps approximate the curvature: 5 to 20.
	Memory int
	// Tolerance ends the search when the projected gradient has no greater
	// entry, or a step gains no more than this part of the value.
	Tolerance float64
}

// Default returns settings that suit a few dozen variables.
func Default() Config { return Config{Iterations: 50, Memory: 8, Tolerance: 1e-6} }

// Minimize lowers f from x, which it overwrites with the best point found, and
// returns f there. f gets a point within the bounds and a gradient to fill; a
// value that is not finite counts as too high. x is moved into the box first.
func Minimize(f func(x, gradient []float64) float64, x, lower, upper []float64, c Config) float64 {
	n := len(x)
	s := search{f: f, lower: lower, upper: upper, next: make([]float64, n), nextGradient: make([]float64, n)}
	s.project(x)
	gradient, direction := make([]float64, n), make([]float64, n)
	value := f(x, gradient)
	if !finite(value, gradient) {
		return value
	}
	var past memory
	for range c.Iterations {
		if s.free(x, gradient, direction) <= c.Tolerance {
			break
		}
		past.newton(direction)
		floats.Scale(-1, direction)
		s.hold(x, gradient, direction)
		nextValue, ok := s.descend(x, gradient, direction, value, past.steps() > 0)
		if !ok {
			if past.steps() == 0 {
				break
			}
			past = memory{} // the curvature misleads: begin again with the steepest descent
			continue
		}
		past.add(c.Memory, x, s.next, gradient, s.nextGradient)
		copy(x, s.next)
		copy(gradient, s.nextGradient)
		gain := value - nextValue
		value = nextValue
		if gain <= c.Tolerance*1e-3*(1+math.Abs(value)) {
			break
		}
	}
	return value
}

type search struct {
	f                  func(x, gradient []float64) float64
	lower, upper       []float64
	next, nextGradient []float64
}

func (s *search) project(x []float64) {
	for i := range x {
		x[i] = math.Min(math.Max(x[i], s.lower[i]), s.upper[i])
	}
}

// free copies the gradient of the free variables, zero for the others, and
// returns its greatest entry.
func (s *search) free(x, gradient, into []float64) float64 {
	greatest := 0.0
	for i, g := range gradient {
		into[i] = g
		if x[i] <= s.lower[i] && g > 0 || x[i] >= s.upper[i] && g < 0 {
			into[i] = 0
		}
		greatest = math.Max(greatest, math.Abs(into[i]))
	}
	return greatest
}

// hold keeps a direction from moving the variables that are not free, and makes
// it one of descent.
func (s *search) hold(x, gradient, direction []float64) {
	slope := 0.0
	for i, g := range gradient {
		if x[i] <= s.lower[i] && g > 0 || x[i] >= s.upper[i] && g < 0 {
			direction[i] = 0
		}
		slope += direction[i] * g
	}
	if slope < 0 {
		return
	}
	s.free(x, gradient, direction)
	floats.Scale(-1, direction)
}

// descend finds a step along the projected direction that lowers the value by
// Armijo's rule; next and nextGradient are then where it leads.
func (s *search) descend(x, gradient, direction []float64, value float64, scaled bool) (float64, bool) {
	step := 1.0
	if !scaled {
		step = math.Min(1, 1/floats.Norm(direction, 1))
	}
	for range 25 {
		slope := 0.0
		for i := range x {
			s.next[i] = math.Min(math.Max(x[i]+step*direction[i], s.lower[i]), s.upper[i])
			slope += gradient[i] * (s.next[i] - x[i])
		}
		if v := s.f(s.next, s.nextGradient); finite(v, s.nextGradient) && v <= value+1e-4*slope && v < value {
			return v, true
		}
		step /= 3
	}
	return value, false
}

func finite(value float64, gradient []float64) bool {
	sum := value
	for _, g := range gradient {
		sum += g * 0
	}
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// memory holds the last steps and what they changed in the gradient.
type memory struct{ moves, changes [][]float64 }

func (m *memory) steps() int { return len(m.moves) }

func (m *memory) add(limit int, x, next, gradient, nextGradient []float64) {
	move, change := make([]float64, len(x)), make([]float64, len(x))
	floats.SubTo(move, next, x)
	floats.SubTo(change, nextGradient, gradient)
	if floats.Dot(move, change) <= 1e-16*floats.Dot(change, change) {
		return // no positive curvature to learn from
	}
	m.moves, m.changes = append(m.moves, move), append(m.changes, change)
	if len(m.moves) > limit {
		m.moves, m.changes = m.moves[1:], m.changes[1:]
	}
}

// newton multiplies a gradient by the inverse of the approximate Hessian: the
// two loops of Nocedal and Wright, algorithm 7.4.
func (m *memory) newton(g []float64) {
	last := len(m.moves) - 1
	if last < 0 {
		return
	}
	weights := make([]float64, len(m.moves))
	for i := last; i >= 0; i-- {
		weights[i] = floats.Dot(m.moves[i], g) / floats.Dot(m.moves[i], m.changes[i])
		floats.AddScaled(g, -weights[i], m.changes[i])
	}
	floats.Scale(floats.Dot(m.moves[last], m.changes[last])/floats.Dot(m.changes[last], m.changes[last]), g)
	for i := range m.moves {
		back := floats.Dot(m.changes[i], g) / floats.Dot(m.moves[i], m.changes[i])
		floats.AddScaled(g, weights[i]-back, m.moves[i])
	}
}
