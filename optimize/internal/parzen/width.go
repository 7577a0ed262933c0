// SPDX-License-Identifier: Apache-2.0

package parzen

import (
	"cmp"
	"math"
	"slices"
)

// Width is a rule for how wide kernels are. The zero Width is that of the
// paper, with hyperopt's bounds.
type Width struct {
	// Joint gives the kernels of all fine axes one covariance, by Scott's rule:
	// n^(-1/(d+4)) times the deviation of the rows, for d axes and n rows.
	// Otherwise each kernel is as wide on an axis as the distance to the
	// farther of its neighbours there, but no less than 1/min(100, n+2); for
	// the outermost only the inner neighbour counts.
	Joint bool
	// Factor multiplies the widths; 0 is 1.
	Factor float64
}

func (w Width) factor() float64 {
	if w.Factor == 0 {
		return 1
	}
	return w.Factor
}

// narrowest is the least deviation of a joint kernel.
const narrowest = 1e-3

// neighbours sets widths to the deviations of kernels around some coordinates
// of an axis, before the factor.
func neighbours(at, widths []float64, order []int) {
	n := len(at)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(at[i], at[j]), cmp.Compare(i, j)) })
	least := 1 / math.Min(100, float64(n)+2)
	for k, i := range order {
		below, above := 0.0, 1.0
		if k > 0 {
			below = at[order[k-1]]
		}
		if k+1 < n {
			above = at[order[k+1]]
		}
		width := math.Max(at[i]-below, above-at[i])
		switch {
		case n > 1 && k == 0:
			width = above - at[i]
		case n > 1 && k == n-1:
			width = at[i] - below
		}
		widths[i] = math.Min(math.Max(width, least), 1)
	}
}

// scott returns the factor of Scott's rule for weighted rows on d axes.
func scott(weights []float64, d int) float64 {
	return math.Pow(effective(weights), -1/(float64(d)+4))
}

// effective returns how many rows of equal weight are worth as much as these.
func effective(weights []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, w := range weights {
		sum += w
		squares += w * w
	}
	return sum * sum / squares
}
