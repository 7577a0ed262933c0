// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"sort"

	"diwan.dev/diwan/optimize/internal/forest"
)

// run is some consecutive cells, from lo up to but not including hi.
type run struct{ lo, hi int }

// cover is what of a parameter belongs to a leaf.
type cover struct {
	runs    []run
	missing bool // whether the parameter need not exist
}

func (c cover) size() int {
	n := 0
	for _, r := range c.runs {
		n += r.hi - r.lo
	}
	return n
}

func (c cover) contains(cell int) bool {
	for _, r := range c.runs {
		if cell >= r.lo && cell < r.hi {
			return true
		}
	}
	return false
}

// walk calls visit with the mean of each leaf of a tree and what of each
// parameter belongs to it.
func (l *lattice) walk(t *forest.Tree, visit func(mean float64, covers []cover)) {
	covers := make([]cover, len(l.dims))
	for i := range covers {
		covers[i] = cover{[]run{{0, len(l.dims[i].at)}}, l.dims[i].parent >= 0}
	}
	l.descend(t, 0, covers, visit)
}

func (l *lattice) descend(t *forest.Tree, node int32, covers []cover, visit func(float64, []cover)) {
	n := &t.Nodes[node]
	if n.Leaf() {
		visit(n.Mean, covers)
		return
	}
	whole := covers[n.Column]
	left, right := l.divide(n, whole)
	for _, side := range []struct {
		child int32
		cover
	}{{n.Left, left}, {n.Right, right}} {
		if side.missing || len(side.runs) > 0 {
			covers[n.Column] = side.cover
			l.descend(t, side.child, covers, visit)
		}
	}
	covers[n.Column] = whole
}

// divide splits a cover as a node does.
func (l *lattice) divide(n *forest.Node, c cover) (left, right cover) {
	left.missing, right.missing = c.missing && n.MissingLeft, c.missing && !n.MissingLeft
	if n.Subset != nil {
		for _, r := range c.runs {
			for cell := r.lo; cell < r.hi; cell++ {
				side := &right
				if n.Subset[cell] {
					side = &left
				}
				side.runs = appendCell(side.runs, cell)
			}
		}
		return left, right
	}
	at := l.dims[n.Column].at
	border := sort.Search(len(at), func(cell int) bool { return at[cell] > n.Threshold })
	for _, r := range c.runs {
		if r.lo < border {
			left.runs = append(left.runs, run{r.lo, min(r.hi, border)})
		}
		if r.hi > border {
			right.runs = append(right.runs, run{max(r.lo, border), r.hi})
		}
	}
	return left, right
}

func appendCell(runs []run, cell int) []run {
	if n := len(runs); n > 0 && runs[n-1].hi == cell {
		runs[n-1].hi++
		return runs
	}
	return append(runs, run{cell, cell + 1})
}
