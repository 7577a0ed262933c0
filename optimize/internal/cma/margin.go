// SPDX-License-Identifier: Apache-2.0

package cma

import "math"

// Grid says which coordinates are rounded before they are evaluated.
//
// For a coordinate i, Borders[i] are the numbers, rising, at which rounding
// goes from one value to the next; nil where the coordinate is not rounded.
// Once σ is small against their distance a strategy would see one value alone.
// The margin correction (R. Hamano, S. Saito, M. Nomura and S. Shirakawa,
// "CMA-ES with margin", arXiv:2205.13482) shifts the mean and stretches the
// distribution so that other values keep a probability of Margin.
type Grid struct {
	Borders [][]float64
	Margin  float64
}

// keepMargin applies the correction: equations 9 to 17 of the paper.
func (d *Distribution) keepMargin() {
	if d.grid.Margin <= 0 {
		return
	}
	for i, borders := range d.grid.Borders {
		if len(borders) > 0 {
			d.keepMarginOf(i, borders)
		}
	}
}

func (d *Distribution) keepMarginOf(i int, borders []float64) {
	deviation, alpha := d.Deviation(i), d.grid.Margin
	above := 0 // borders[above] is the first that is not below the mean
	for above < len(borders) && borders[above] < d.mean[i] {
		above++
	}
	if above == 0 || above == len(borders) { // in the first or last cell: one neighbor
		border := borders[min(above, len(borders)-1)]
		reach := tail(alpha) * deviation
		d.mean[i] = border + math.Max(-reach, math.Min(reach, d.mean[i]-border))
		return
	}
	low, up := borders[above-1], borders[above]
	below, over := normalBelow((low-d.mean[i])/deviation), normalBelow((d.mean[i]-up)/deviation)
	within := 1 - below - over
	less, more := math.Max(alpha/2, below), math.Max(alpha/2, over)
	if less == below && more == over {
		return
	}
	excess := (1 - less - more - within) / (less + more + within - 3*alpha/2)
	less, more = less+excess*(less-alpha/2), more+excess*(more-alpha/2)
	zl, zu := tail(less), tail(more)
	d.mean[i] = (low*zu + up*zl) / (zl + zu)
	d.stretch[i] *= (up - low) / (zl + zu) / deviation
}

// normalBelow is the distribution function of the standard normal distribution.
func normalBelow(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// tail returns the number that a standard normal exceeds with probability p.
func tail(p float64) float64 { return math.Sqrt2 * math.Erfcinv(2*p) }
