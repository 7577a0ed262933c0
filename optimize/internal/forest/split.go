// SPDX-License-Identifier: Apache-2.0

package forest

import (
	"cmp"
	"math"
	"slices"
)

// cell is what a split needs to know of the rows in one bin: how many they are
// and the sum of their y less the node's mean.
type cell struct {
	bin int
	n   int
	sum float64
}

// split is a way to divide rows at a column.
type split struct {
	column      int
	threshold   float64
	lastLeft    uint16 // the last bin that goes left of a numeric column
	subset      []bool // of the bins that go left of a categorical one
	missingLeft bool
	gain        float64 // by how much the sum of squares falls, 0 for no split
}

func (s *split) left(bin uint16) bool {
	switch {
	case bin == missing:
		return s.missingLeft
	case s.subset != nil:
		return s.subset[bin]
	}
	return bin <= s.lastLeft
}

// small is the number of rows up to which sorting is faster than counting.
const small = 24

// collect returns the cells of a column, by bin, and that of missing values.
func (g *grower) collect(c *column, rows []int32) (cells []cell, gone cell) {
	cells = g.cells[:0]
	if len(rows) <= small {
		for i, row := range rows {
			bin, y := c.bins[row], g.centred[i]
			if bin == missing {
				gone.n++
				gone.sum += y
				continue
			}
			cells = insert(cells, cell{int(bin), 1, y})
		}
		return cells, gone
	}
	sums := g.sums[:c.count]
	clear(sums)
	for i, row := range rows {
		into := &gone
		if bin := c.bins[row]; bin != missing {
			into = &sums[bin]
		}
		into.n++
		into.sum += g.centred[i]
	}
	for bin := range sums {
		if s := &sums[bin]; s.n > 0 {
			cells = append(cells, cell{bin, s.n, s.sum})
		}
	}
	return cells, gone
}

// insert adds one row's cell to those of others, which are sorted by bin.
func insert(cells []cell, one cell) []cell {
	at := len(cells)
	for at > 0 && cells[at-1].bin > one.bin {
		at--
	}
	if at > 0 && cells[at-1].bin == one.bin {
		cells[at-1].n++
		cells[at-1].sum += one.sum
		return cells
	}
	cells = append(cells, cell{})
	copy(cells[at+1:], cells[at:])
	cells[at] = one
	return cells
}

// splitColumn returns the best split of a column, or for ExtraTrees a random
// one.
func (g *grower) splitColumn(k int, cells []cell, gone cell) split {
	c := &g.columns[k]
	s := split{column: k}
	switch {
	case g.c.Kind == ExtraTrees && c.categories > 0:
		g.randomSubset(cells, gone, &s)
	case g.c.Kind == ExtraTrees:
		g.randomThreshold(c, cells, gone, &s)
	case c.categories > 0:
		// In the order of their means, one of the best subsets is a prefix
		// (Fisher 1958).
		slices.SortStableFunc(cells, func(a, b cell) int {
			return cmp.Compare(a.sum/float64(a.n), b.sum/float64(b.n))
		})
		if last := g.scan(cells, gone, &s); s.gain > 0 {
			g.setSubset(c, cells, last, gone, &s)
		}
	default:
		if last := g.scan(cells, gone, &s); s.gain > 0 {
			u := 0.5
			if !g.c.Middle {
				u = g.r.Float()
			}
			g.setThreshold(c, cells, last, u, &s)
		}
	}
	return s
}

// scan looks for the prefix of the cells, with or without the missing values,
// that makes the best left side. It returns the index of its last cell and
// sets the split's gain and missingLeft.
func (g *grower) scan(cells []cell, gone cell, s *split) (last int) {
	n := gone.n
	for i := range cells {
		n += cells[i].n
	}
	last = g.prefix(cells, cell{}, n, s)
	if gone.n > 0 {
		var with split
		if k := g.prefix(cells, gone, n, &with); with.gain > s.gain {
			last, s.gain, s.missingLeft = k, with.gain, true
		}
		return last
	}
	left := 0
	for _, c := range cells[:last+1] {
		left += c.n
	}
	s.missingLeft = 2*left >= n // none to learn from: they go with the more
	return last
}

// prefix returns the index of the last cell of the best left side that begins
// with some rows, and sets the gain. The sum of all n rows is 0.
func (g *grower) prefix(cells []cell, with cell, n int, s *split) (last int) {
	left, sum := with.n, with.sum
	for i := range cells {
		left += cells[i].n
		sum += cells[i].sum
		if n-left < g.c.MinLeaf {
			break
		}
		if left < g.c.MinLeaf {
			continue
		}
		if gain := sum * sum * float64(n) / float64(left*(n-left)); gain > s.gain {
			last, s.gain = i, gain
		}
	}
	return last
}

// setThreshold divides a numeric column after a cell, the part u of the way to
// the next one.
func (g *grower) setThreshold(c *column, cells []cell, last int, u float64, s *split) {
	if last+1 == len(cells) { // only missing values go right
		s.lastLeft, s.threshold = uint16(c.count-1), math.Inf(1)
		return
	}
	a := cells[last].bin
	s.lastLeft, s.threshold = uint16(a), c.between(a, cells[last+1].bin, u)
}

// setSubset sends the categories up to a cell left. Those that no row has go
// with the more.
func (g *grower) setSubset(c *column, cells []cell, last int, gone cell, s *split) {
	subset := g.subset[:c.categories]
	left, right := 0, 0
	for i, each := range cells {
		if i <= last {
			left += each.n
		} else {
			right += each.n
		}
	}
	for k := range subset {
		subset[k] = left >= right
	}
	for i, each := range cells {
		subset[each.bin] = i <= last
	}
	s.subset = subset
}

// randomThreshold divides a numeric column at a number drawn between the least
// and the greatest.
func (g *grower) randomThreshold(c *column, cells []cell, gone cell, s *split) {
	lo, hi := c.low[cells[0].bin], c.high[cells[len(cells)-1].bin]
	at := lo + g.r.Float()*(hi-lo)
	missingLeft := g.r.Float() < 0.5
	last := 0
	for last+2 < len(cells) && c.low[cells[last+1].bin] <= at {
		last++
	}
	g.measure(cells, last, gone, missingLeft, s)
	u := 0.5
	if last+1 < len(cells) {
		if a, b := c.high[cells[last].bin], c.low[cells[last+1].bin]; a < at && at < b {
			u = (at - a) / (b - a)
		}
	}
	g.setThreshold(c, cells, last, u, s)
}

// randomSubset divides the categories at random, with some on each side if
// there are two.
func (g *grower) randomSubset(cells []cell, gone cell, s *split) {
	c := &g.columns[s.column]
	for i := len(cells) - 1; i > 0; i-- {
		k := g.r.Below(i + 1)
		cells[i], cells[k] = cells[k], cells[i]
	}
	last := 0
	for last+2 < len(cells) && g.r.Float() < 0.5 {
		last++
	}
	g.measure(cells, last, gone, g.r.Float() < 0.5, s)
	g.setSubset(c, cells, last, gone, s)
}

// measure sets the gain of a split after a cell.
func (g *grower) measure(cells []cell, last int, gone cell, missingLeft bool, s *split) {
	n, left, sum := gone.n, 0, 0.0
	if s.missingLeft = missingLeft && len(cells) > 1; s.missingLeft {
		left, sum = gone.n, gone.sum
	}
	for i := range cells {
		n += cells[i].n
		if i <= last {
			left += cells[i].n
			sum += cells[i].sum
		}
	}
	if left >= g.c.MinLeaf && n-left >= g.c.MinLeaf {
		// Any split will do, also one that gains nothing, so that trees differ.
		s.gain = max(sum*sum*float64(n)/float64(left*(n-left)), 1e-300)
	}
}
