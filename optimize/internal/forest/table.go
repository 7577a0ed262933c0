// SPDX-License-Identifier: Apache-2.0

package forest

import (
	"math"
	"slices"
)

// maxBins is how many bins a numeric column has at most.
const maxBins = 255

// missing is the bin of missing values.
const missing = math.MaxUint16

// table is the rows by column, each value as the number of its bin. The bins
// of a numeric column are in the order of its numbers; those of a categorical
// one are its categories.
type table struct {
	rows    int
	columns []column
}

type column struct {
	categories int // 0 when numeric
	bins       []uint16
	count      int       // of bins
	low, high  []float64 // the least and the greatest number in each bin of a numeric column
}

func newTable(x [][]float64, categories []int) *table {
	t := &table{rows: len(x), columns: make([]column, len(x[0]))}
	values := make([]float64, len(x))
	for k := range t.columns {
		for i, row := range x {
			values[i] = row[k]
		}
		if k < len(categories) && categories[k] > 0 {
			t.columns[k] = newCategorical(values, categories[k])
		} else {
			t.columns[k] = newNumeric(values)
		}
	}
	return t
}

func newCategorical(values []float64, n int) column {
	c := column{categories: n, count: n, bins: make([]uint16, len(values))}
	for i, v := range values {
		c.bins[i] = missing
		if !math.IsNaN(v) {
			c.bins[i] = uint16(category(v, n))
		}
	}
	return c
}

func newNumeric(values []float64) column {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(sorted)
	distinct := slices.Compact(slices.Clone(sorted))
	c := column{bins: make([]uint16, len(values))}
	share := 0 // how many rows a bin has at least, but for the last
	if len(distinct) > maxBins {
		share = (len(sorted) + maxBins - 1) / maxBins
	}
	for at := 0; at < len(sorted); {
		end := min(at+max(share, 1), len(sorted))
		for end < len(sorted) && sorted[end] == sorted[end-1] {
			end++
		}
		c.low, c.high = append(c.low, sorted[at]), append(c.high, sorted[end-1])
		at = end
	}
	c.count = len(c.low)
	for i, v := range values {
		c.bins[i] = missing
		if !math.IsNaN(v) {
			k, _ := slices.BinarySearch(c.high, v)
			c.bins[i] = uint16(k)
		}
	}
	return c
}

// between returns the number that lies the part u of the way from the greatest
// number of bin a to the least of a later bin b, and before that.
func (c *column) between(a, b int, u float64) float64 {
	lo, hi := c.high[a], c.low[b]
	if t := lo + u*(hi-lo); t < hi {
		return t
	}
	return lo
}
