// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"math"

	"diwan.dev/diwan/optimize"
)

// lattice divides each parameter of a space into cells that are equally likely
// where the parameter exists.
type lattice struct {
	space *optimize.Space
	dims  []dim
	order []int // parents before their children
}

type dim struct {
	at       []float64 // by cell: the unit coordinate of its value, ascending
	parent   int       // -1 for none
	children []int
	active   []bool  // by cell of the parent: whether the parameter exists
	chance   float64 // that the parameter exists
	base     []float64
}

// newLattice returns the lattice with a maximum number of cells per
// parameter, except for categories, each of which has its own cell.
func newLattice(space *optimize.Space, most int) *lattice {
	l := &lattice{space: space, dims: make([]dim, space.Len())}
	byName := make(map[string]int, space.Len())
	for i := range l.dims {
		byName[space.Parameter(i).Name] = i
	}
	for i := range l.dims {
		d := &l.dims[i]
		d.parent = -1
		if parent, ok := byName[space.Parameter(i).Parent]; ok {
			d.parent = parent
			l.dims[parent].children = append(l.dims[parent].children, i)
		} else {
			l.order = append(l.order, i)
		}
	}
	for n := 0; n < len(l.order); n++ {
		l.order = append(l.order, l.dims[l.order[n]].children...)
	}
	for _, i := range l.order {
		l.place(i, cells(space.Parameter(i), most))
	}
	return l
}

// cells returns how many cells a parameter has.
func cells(p optimize.Parameter, most int) int {
	if p.Kind == optimize.KindCategorical {
		return len(p.List)
	}
	step := p.Step
	if p.Kind == optimize.KindInt && step == 0 {
		step = 1
	}
	count := len(p.List)
	switch {
	case count > 0:
	case p.Min == p.Max:
		return 1
	case step == 0 || p.Distribution != "" && p.Distribution != optimize.Uniform:
		return most
	default:
		count = int(math.Min((p.Max-p.Min)/step+1e-9, 1e9)) + 1
	}
	return min(count, most)
}

// place computes the cells of a parameter, whose parent has its own already.
func (l *lattice) place(i, cells int) {
	d := &l.dims[i]
	name := l.space.Parameter(i).Name
	d.base, d.chance = make([]float64, len(l.dims)), 1
	for k := range d.base {
		d.base[k] = 0.5
	}
	if d.parent >= 0 {
		p := &l.dims[d.parent]
		copy(d.base, p.base)
		d.active = make([]bool, len(p.at))
		count := 0
		for cell := range p.at {
			u := append([]float64(nil), p.base...)
			u[d.parent] = middle(cell, len(p.at))
			if d.active[cell] = p.chance > 0 && l.space.Quantile(u).Active(name); d.active[cell] {
				d.base[d.parent] = u[d.parent]
				count++
			}
		}
		d.chance = p.chance * float64(count) / float64(len(p.at))
	}
	d.at = make([]float64, cells)
	for cell := range d.at {
		d.at[cell] = middle(cell, cells)
		if d.chance > 0 {
			d.at[cell] = l.space.Unit(l.point(i, cell))[i]
		}
	}
}

// point returns a point that has a parameter, with the value of a cell.
func (l *lattice) point(i, cell int) optimize.Point {
	u := append([]float64(nil), l.dims[i].base...)
	u[i] = middle(cell, len(l.dims[i].at))
	return l.space.Quantile(u)
}

func middle(cell, cells int) float64 { return (float64(cell) + 0.5) / float64(cells) }

// root returns the parameter that depends on no other, on which i depends.
func (l *lattice) root(i int) int {
	for l.dims[i].parent >= 0 {
		i = l.dims[i].parent
	}
	return i
}

// path returns i, its parent, and so on up to its root.
func (l *lattice) path(i int) []int {
	path := []int{i}
	for l.dims[i].parent >= 0 {
		i = l.dims[i].parent
		path = append(path, i)
	}
	return path
}
