// SPDX-License-Identifier: Apache-2.0

package forest

import (
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/random"
)

// boost fits, for each quantile q, a constant and then trees to the sign of
// what is left: q where the prediction is too low, q - 1 where it is too high.
// That is the descending gradient of the pinball loss, whose least value the
// quantile has. A leaf's value is the quantile of what is left of its rows.
func (m *Model) boost(g *grower, y []float64, c Config, seed uint64) {
	rows := make([]int32, len(y))
	gradient, rest := make([]float64, len(y)), make([]float64, len(y))
	for k, q := range quantiles {
		m.start[k] = quantile(slices.Clone(y), q)
		for i, v := range y {
			rest[i] = v - m.start[k]
		}
		for i := range c.Trees {
			for at, v := range rest {
				rows[at] = int32(at)
				gradient[at] = q
				if v <= 0 {
					gradient[at] = q - 1
				}
			}
			tree := g.grow(rows, gradient, random.New(seed, uint64(k*c.Trees+i)))
			m.correct(tree, rows, rest, q)
			m.trees = append(m.trees, tree)
		}
	}
}

// correct sets the leaves of a tree to the quantile of what is left of their
// rows, and takes what the tree then predicts from the rest. Growing a tree
// has sorted the rows by leaf.
func (m *Model) correct(tree *Tree, rows []int32, rest []float64, q float64) {
	for i := range tree.Nodes {
		leaf := &tree.Nodes[i]
		if !leaf.Leaf() {
			continue
		}
		inside := rows[leaf.from:leaf.to]
		left := make([]float64, len(inside))
		for k, row := range inside {
			left[k] = rest[row]
		}
		leaf.Mean = quantile(left, q)
		for _, row := range inside {
			rest[row] -= m.rate * leaf.Mean
		}
	}
}

// quantile returns the q-quantile of at least one number, with linear
// interpolation between the two nearest. It sorts them.
func quantile(numbers []float64, q float64) float64 {
	slices.Sort(numbers)
	at := q * float64(len(numbers)-1)
	k := int(at)
	if k+1 == len(numbers) {
		return numbers[k]
	}
	return numbers[k] + (at-float64(k))*(numbers[k+1]-numbers[k])
}

func (m *Model) predictQuantiles(row []float64) (median, deviation float64) {
	at, each := m.start, len(m.trees)/len(quantiles)
	for i, t := range m.trees {
		at[i/each] += m.rate * t.leaf(row).Mean
	}
	return at[0], math.Max(at[2]-at[1], 0) / 2
}
