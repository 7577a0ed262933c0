// SPDX-License-Identifier: Apache-2.0

package forest

import (
	"math"

	"diwan.dev/diwan/optimize/internal/random"
)

// Kind is a way to make a model of several trees.
type Kind int

// The kinds.
const (
	// RandomForest averages trees that each see rows drawn with replacement
	// (Breiman 2001).
	RandomForest Kind = iota
	// ExtraTrees averages trees that see all rows and split at random places,
	// the best of one place a column (Geurts, Ernst and Wehenkel 2006).
	ExtraTrees
	// GradientBoosting adds up shallow trees, each of which mends what those
	// before it got wrong (Friedman 2001), once for each of three quantiles.
	GradientBoosting
)

// Config says how to fit a model.
type Config struct {
	Kind Kind
	// Trees is how many trees there are, from 1; for GradientBoosting, for
	// each quantile. More make the mean smoother and cost as much more.
	Trees int
	// MinLeaf is how many rows a leaf has at least, from 1.
	MinLeaf int
	// Rows is how many rows each tree of a RandomForest draws; 0 is as many as
	// there are.
	Rows int
	// Middle puts the threshold of a numeric split in the middle between the
	// two numbers that it divides, and not anywhere between them.
	Middle bool
	// MaxDepth is how many splits lie above a leaf at most; 0 is no bound.
	MaxDepth int
	// Features is the part of the columns that compete for each split, in
	// (0, 1]; at least one does.
	Features float64
	// Rate is how much of each tree's correction GradientBoosting applies, in
	// (0, 1].
	Rate float64
}

// DefaultConfig returns a configuration that suits the surrogate of a search:
// a hundred trees. The leaves of 3 rows and the use of all columns are
// scikit-optimize's; the depth 3 and rate 0.1 of boosting are Friedman's.
func DefaultConfig(kind Kind) Config {
	c := Config{Kind: kind, Trees: 100, MinLeaf: 3, Features: 1, Rate: 0.1}
	if kind == GradientBoosting {
		c.MinLeaf, c.MaxDepth = 1, 3
	}
	return c
}

// Model predicts. It does not change, and may be used by several goroutines at
// once.
type Model struct {
	kind        Kind
	trees       []*Tree // of each quantile in turn for GradientBoosting
	start       [3]float64
	rate        float64
	shift, unit float64 // trees predict (y - shift) / unit
}

// quantiles are those that GradientBoosting predicts: the median, and what
// lies a standard deviation below and above it if errors are normal.
var quantiles = [3]float64{0.5, 0.16, 0.84}

// Fit returns the model of rows x, at least one, with the numbers y to
// predict. categories has the number of categories of each column, 0 for a
// numeric one; nil says that all are numeric. An infinite y counts as the
// finite one nearest to it, NaN as the greatest.
func Fit(x [][]float64, categories []int, y []float64, c Config, seed uint64) *Model {
	c.Trees, c.MinLeaf = max(c.Trees, 1), max(c.MinLeaf, 1)
	m := &Model{kind: c.Kind, rate: c.Rate}
	y = m.scale(y)
	g := newGrower(newTable(x, categories), c)
	if c.Kind == GradientBoosting {
		m.boost(g, y, c, seed)
		return m
	}
	for i := range c.Trees {
		r := random.New(seed, uint64(i))
		m.trees = append(m.trees, g.grow(c.draw(len(x), r), y, r))
	}
	return m
}

// draw returns the rows of n that one tree sees.
func (c Config) draw(n int, r *random.Stream) []int32 {
	if c.Kind != RandomForest {
		rows := make([]int32, n)
		for k := range rows {
			rows[k] = int32(k)
		}
		return rows
	}
	size := n
	if c.Rows > 0 {
		size = min(n, c.Rows)
	}
	rows := make([]int32, size)
	for k := range rows {
		rows[k] = int32(r.Below(n))
	}
	return rows
}

// scale returns y mapped to -1 … 1, and remembers how.
func (m *Model) scale(y []float64) []float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range y {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	if lo > hi {
		lo, hi = 0, 0
	}
	m.shift, m.unit = lo/2+hi/2, hi/2-lo/2 // which do not overflow
	if m.unit == 0 {
		m.unit = 1
	}
	scaled := make([]float64, len(y))
	for i, v := range y {
		if math.IsNaN(v) {
			v = hi
		}
		scaled[i] = (math.Min(math.Max(v, lo), hi) - m.shift) / m.unit
	}
	return scaled
}

// Predict returns the mean and the standard deviation of y at a row.
//
// Of averaged trees the deviation is that of a number drawn from a leaf of a
// tree drawn at random: the variance between trees and that within leaves add
// up (Hutter et al., "Algorithm runtime prediction", 2014, §4.3.2). Of
// boosting the mean is the median, and the deviation half of the distance
// between the quantiles 0.16 and 0.84.
func (m *Model) Predict(row []float64) (mean, deviation float64) {
	if m.kind == GradientBoosting {
		mean, deviation = m.predictQuantiles(row)
	} else {
		mean, deviation = m.predictMixture(row)
	}
	return finite(m.shift + m.unit*mean), finite(m.unit * deviation)
}

func (m *Model) predictMixture(row []float64) (mean, deviation float64) {
	square := 0.0
	for _, t := range m.trees {
		leaf := t.leaf(row)
		mean += leaf.Mean
		square += leaf.Mean*leaf.Mean + leaf.variance
	}
	mean /= float64(len(m.trees))
	return mean, math.Sqrt(math.Max(square/float64(len(m.trees))-mean*mean, 0))
}

func finite(v float64) float64 {
	return math.Min(math.Max(v, -math.MaxFloat64), math.MaxFloat64)
}

// Trees returns the trees that the model averages, none for GradientBoosting,
// for readers of their structure. The mean of a leaf is on the model's own
// scale, which Scale explains.
func (m *Model) Trees() []*Tree {
	if m.kind == GradientBoosting {
		return nil
	}
	return m.trees
}

// Scale returns the numbers of which y is shift + unit·mean, where mean is that
// of a leaf.
func (m *Model) Scale() (shift, unit float64) { return m.shift, m.unit }
