// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"

	"diwan.dev/diwan/optimize"
)

// Response is a model's partial dependence of the objective on one parameter:
// a line to draw through a [Slice].
type Response struct {
	Axis Axis `json:"axis"`
	// At are values of the parameter that divide it evenly, as the search
	// sees it, and Mean the mean of the objective at each.
	At   []Value  `json:"at"`
	Mean []Number `json:"mean"`
}

// Response returns the response to a parameter.
func (m *Model) Response(name string) (Response, error) {
	i, err := index(m.space, name)
	if err != nil {
		return Response{}, fmt.Errorf("cannot compute response: %w", err)
	}
	l := newLattice(m.space, resolution)
	r := Response{Axis: axis(m.space.Parameter(i)), At: l.values(i)}
	for _, v := range m.marginals(l)[i] {
		r.Mean = append(r.Mean, m.mean(v))
	}
	return r, nil
}

// Contour is a model's partial dependence of the objective on two parameters.
type Contour struct {
	X Axis `json:"x"`
	Y Axis `json:"y"`
	// AtX and AtY are values of the parameters, and Mean the mean of the
	// objective: Mean[i][j] where x is AtX[i] and y is AtY[j]. It is null
	// where y does not exist at AtX[i], or x at AtY[j].
	AtX  []Value    `json:"atX"`
	AtY  []Value    `json:"atY"`
	Mean [][]Number `json:"mean"`
}

// Contour returns the contour of two parameters that a point may have both.
func (m *Model) Contour(x, y string) (Contour, error) {
	i, err := index(m.space, x)
	if err != nil {
		return Contour{}, fmt.Errorf("cannot compute contour: %w", err)
	}
	j, err := index(m.space, y)
	if err != nil {
		return Contour{}, fmt.Errorf("cannot compute contour: %w", err)
	}
	if i == j {
		return Contour{}, fmt.Errorf("cannot compute contour of %q and itself", x)
	}
	l := newLattice(m.space, pairResolution)
	p, ok := l.newPair(i, j)
	if !ok {
		return Contour{}, fmt.Errorf("cannot compute contour of %q and %q: no point has both", x, y)
	}
	m.fill(l, []*pair{p})
	return m.contour(l, p, i, j), nil
}

func (m *Model) contour(l *lattice, p *pair, i, j int) Contour {
	c := Contour{X: axis(m.space.Parameter(i)), Y: axis(m.space.Parameter(j)), AtX: l.values(i), AtY: l.values(j)}
	columns, allowed := len(l.dims[p.j].at), p.allowed()
	c.Mean = make([][]Number, len(c.AtX))
	for a := range c.AtX {
		for b := range c.AtY {
			row, column := a, b
			if i == p.j {
				row, column = b, a
			}
			mean := m.mean(p.table[row*columns+column])
			if allowed != nil && !allowed[row] {
				mean = notANumber
			}
			c.Mean[a] = append(c.Mean[a], mean)
		}
	}
	return c
}

// values returns the value of each cell of a parameter.
func (l *lattice) values(i int) []Value {
	values := make([]Value, len(l.dims[i].at))
	for cell := range values {
		values[cell] = value(l.point(i, cell), l.space.Parameter(i))
	}
	return values
}

func index(s *optimize.Space, name string) (int, error) {
	for i := range s.Len() {
		if s.Parameter(i).Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("space has no parameter %q", name)
}
