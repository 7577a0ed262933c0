// SPDX-License-Identifier: Apache-2.0

package parzen

import (
	"math"
	"slices"
)

// Width is a rule for how wide kernels are. The zero Width is that of the
// paper, with hyperopt's bounds.
type Width struct {
	// Joint gives the kernels of all fine axes one covariance, by Scott's rule:
	// n^(-1/(d+4)) times the deviation of the rows, for d axes and n rows.
	// Otherwise each kernel is as wide on an axis as the distance to the
	// farther of its neighbors there, but no less than 1/min(100, n+2); for
	// the outermost only the inner neighbor counts.
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

// placed is a kernel and where it is on an axis.
type placed struct {
	at     float64
	kernel int
}

// neighbors sets widths to the deviations of kernels around some coordinates
// of an axis, before the factor. sorted is scratch of the same length.
func neighbours(at, widths []float64, sorted []placed) {
	n := len(at)
	for i, u := range at {
		sorted[i] = placed{u, i}
	}
	slices.SortFunc(sorted, func(a, b placed) int {
		switch { // faster than cmp.Compare, and these are numbers
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return a.kernel - b.kernel
	})
	least := 1 / math.Min(100, float64(n)+2)
	for k, p := range sorted {
		below, above := 0.0, 1.0
		if k > 0 {
			below = sorted[k-1].at
		}
		if k+1 < n {
			above = sorted[k+1].at
		}
		width := max(p.at-below, above-p.at)
		switch {
		case n > 1 && k == 0:
			width = above - p.at
		case n > 1 && k == n-1:
			width = p.at - below
		}
		widths[p.kernel] = min(max(width, least), 1)
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
