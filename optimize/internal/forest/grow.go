// SPDX-License-Identifier: Apache-2.0

package forest

import (
	"math"

	"diwan.dev/diwan/optimize/internal/random"
)

// grower grows trees on a table. Its buffers are used again.
type grower struct {
	*table
	c     Config
	order []int // of columns

	tree *Tree
	y    []float64
	r    *random.Stream

	centred []float64 // y less the mean, of the rows of a node
	sums    []cell    // by bin
	cells   []cell
	spare   []int32
	subset  []bool
}

func newGrower(t *table, c Config) *grower {
	g := &grower{table: t, c: c, order: make([]int, len(t.columns)), spare: make([]int32, t.rows), centred: make([]float64, t.rows)}
	bins := 0
	for k := range t.columns {
		g.order[k] = k
		bins = max(bins, t.columns[k].count)
	}
	g.sums, g.cells, g.subset = make([]cell, bins), make([]cell, 0, max(bins, small)), make([]bool, bins)
	return g
}

// grow returns the tree of some rows, which it sorts by leaf.
func (g *grower) grow(rows []int32, y []float64, r *random.Stream) *Tree {
	g.tree, g.y, g.r = &Tree{}, y, r
	for k := range g.order {
		g.order[k] = k
	}
	g.node(rows, 0, 0)
	return g.tree
}

// node adds the node of some rows, of which those before it are from, and all
// that is below it; it returns its index.
func (g *grower) node(rows []int32, from, depth int) int32 {
	index := len(g.tree.Nodes)
	mean, variance := g.moments(rows)
	g.tree.Nodes = append(g.tree.Nodes, Node{Mean: mean, variance: variance, from: int32(from), to: int32(from + len(rows))})
	if len(rows) < 2*g.c.MinLeaf || g.c.MaxDepth > 0 && depth == g.c.MaxDepth || variance <= 0 {
		return int32(index)
	}
	s, ok := g.best(rows, mean)
	if !ok {
		return int32(index)
	}
	left := g.partition(rows, s)
	l := g.node(rows[:left], from, depth+1)
	r := g.node(rows[left:], from+left, depth+1)
	n := &g.tree.Nodes[index]
	n.Column, n.Left, n.Right = int32(s.column), l, r
	n.Threshold, n.Subset, n.MissingLeft = s.threshold, s.subset, s.missingLeft
	return int32(index)
}

// moments returns mean and variance of y.
func (g *grower) moments(rows []int32) (mean, variance float64) {
	for _, row := range rows {
		mean += g.y[row]
	}
	mean /= float64(len(rows))
	for _, row := range rows {
		d := g.y[row] - mean
		variance += d * d
	}
	variance /= float64(len(rows))
	if variance <= 1e-30*math.Max(1, mean*mean) { // rounding
		variance = 0
	}
	return mean, variance
}

// partition moves the rows that go left to the front, each side in its old
// order, and returns how many there are.
func (g *grower) partition(rows []int32, s split) int {
	bins := g.columns[s.column].bins
	left, right := 0, 0
	for _, row := range rows {
		if s.left(bins[row]) {
			rows[left] = row
			left++
		} else {
			g.spare[right] = row
			right++
		}
	}
	copy(rows[left:], g.spare[:right])
	return left
}

// best returns the split that takes most of the variance away, of one for each
// column in the competition.
func (g *grower) best(rows []int32, mean float64) (split, bool) {
	g.centred = g.centred[:len(rows)]
	for i, row := range rows {
		g.centred[i] = g.y[row] - mean
	}
	var best split
	compete := int(math.Ceil(g.c.Features * float64(len(g.order))))
	for k := 0; k < len(g.order) && compete > 0; k++ {
		if g.c.Features < 1 || g.c.Kind == ExtraTrees {
			other := k + g.r.Below(len(g.order)-k)
			g.order[k], g.order[other] = g.order[other], g.order[k]
		}
		cells, gone := g.collect(&g.columns[g.order[k]], rows)
		if len(cells) == 0 || len(cells) == 1 && gone.n == 0 {
			continue // constant: others compete
		}
		compete--
		if s := g.splitColumn(g.order[k], cells, gone); s.gain > best.gain {
			best = s
			best.subset = append([]bool(nil), s.subset...)
		}
	}
	return best, best.gain > 0
}
