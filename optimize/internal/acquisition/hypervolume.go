// SPDX-License-Identifier: Apache-2.0

package acquisition

import (
	"cmp"
	"math"
	"slices"
)

// LogHypervolume returns the logarithm of the expected growth of the volume
// that a front dominates within a reference point, for outcomes that are
// independent. It is exact for any number of objectives: the volume that is
// not dominated is cut into boxes, and the expectation over a box is a product
// over the objectives of differences of expected improvements (Yang et al.,
// "Efficient computation of expected hypervolume improvement using box
// decomposition algorithms", 2019). The cost grows with the number of boxes,
// which is len(front)+1 for two objectives and about its square for three.
func LogHypervolume(front [][]float64, reference []float64) Function {
	g := newGrid(front, reference)
	return func(outcomes []Prediction, slopes []Slope) float64 {
		edges := g.improvements(outcomes)
		value := math.Inf(-1)
		clear(slopes)
		for i := range g.boxes {
			value = g.add(&g.boxes[i], edges, value, slopes)
		}
		return value
	}
}

// grid is the volume that a front leaves, as boxes whose edges are numbered.
type grid struct {
	edges [][]float64 // of each objective: −∞, those of the front, the reference
	boxes []box
}

type box struct{ lower, upper []int }

func newGrid(front [][]float64, reference []float64) *grid {
	g := &grid{}
	for m, r := range reference {
		edges := []float64{math.Inf(-1)}
		for _, p := range front {
			if p[m] < r {
				edges = append(edges, p[m])
			}
		}
		slices.Sort(edges)
		g.edges = append(g.edges, append(slices.Compact(edges), r))
	}
	var inside [][]int
	for _, p := range front {
		if row, ok := g.rank(p, reference); ok {
			inside = append(inside, row)
		}
	}
	g.cut(inside, len(reference)-1, make([]int, len(reference)), make([]int, len(reference)))
	return g
}

// rank returns the numbers of a point's edges, if it is within the reference.
func (g *grid) rank(p, reference []float64) ([]int, bool) {
	row := make([]int, len(p))
	for m, v := range p {
		if v >= reference[m] {
			return nil, false
		}
		row[m], _ = slices.BinarySearch(g.edges[m], v)
	}
	return row, true
}

// cut adds the boxes of what some points leave in the objectives up to m; the
// others have the edges in lower and upper.
func (g *grid) cut(points [][]int, m int, lower, upper []int) {
	if m == 0 {
		first := len(g.edges[0]) - 1
		for _, p := range points {
			first = min(first, p[0])
		}
		lower[0], upper[0] = 0, first
		if first > 0 {
			g.boxes = append(g.boxes, box{slices.Clone(lower), slices.Clone(upper)})
		}
		return
	}
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b []int) int { return cmp.Compare(a[m], b[m]) })
	for from, i := 0, 0; from < len(g.edges[m])-1; {
		for i < len(points) && points[i][m] <= from {
			i++ // these dominate in the slab from here on
		}
		to := len(g.edges[m]) - 1
		if i < len(points) {
			to = points[i][m]
		}
		lower[m], upper[m] = from, to
		g.cut(points[:i:i], m-1, lower, upper)
		from = to
	}
}

type improvement struct {
	value float64 // logarithm
	slope Slope
}

func (g *grid) improvements(outcomes []Prediction) [][]improvement {
	table := make([][]improvement, len(outcomes))
	for m, p := range outcomes {
		table[m] = make([]improvement, len(g.edges[m]))
		for i, edge := range g.edges[m] {
			if i == 0 {
				table[m][i].value = math.Inf(-1)
				continue
			}
			table[m][i].value, table[m][i].slope = logImprovement(edge, p)
		}
	}
	return table
}

// add adds a box to a sum of exponentials whose logarithm is total, and to its
// slopes, which are those of the logarithm.
func (g *grid) add(b *box, edges [][]improvement, total float64, slopes []Slope) float64 {
	value := 0.0
	for m := range edges {
		value += edges[m][b.upper[m]].value + log1mexp(edges[m][b.lower[m]].value-edges[m][b.upper[m]].value)
	}
	if math.IsInf(value, -1) || math.IsNaN(value) {
		return total
	}
	sum := max(total, value) + math.Log1p(math.Exp(-math.Abs(total-value)))
	before, part := math.Exp(total-sum), math.Exp(value-sum)
	for m := range edges {
		upper, lower := edges[m][b.upper[m]], edges[m][b.lower[m]]
		// With w = e^(lower − upper), log(e^upper − e^lower) has the slope
		// (upper' − w·lower')/(1 − w).
		w := math.Exp(lower.value - upper.value)
		slopes[m].Mean = before*slopes[m].Mean + part*(upper.slope.Mean-w*lower.slope.Mean)/(1-w)
		slopes[m].Deviation = before*slopes[m].Deviation + part*(upper.slope.Deviation-w*lower.slope.Deviation)/(1-w)
	}
	return sum
}

// log1mexp returns log(1 − e^x) for x < 0.
func log1mexp(x float64) float64 {
	if x > -math.Ln2 {
		return math.Log(-math.Expm1(x))
	}
	return math.Log1p(-math.Exp(x))
}
