// SPDX-License-Identifier: Apache-2.0

package parzen

import "slices"

// Axis is one dimension of the unit cube. The zero Axis is continuous.
type Axis struct {
	// Edges divide a finite axis with an order into cells, one a value: from
	// 0 to 1, rising, one more than there are values. A coordinate stands for
	// the cell that it lies in. Nil is a continuous axis.
	Edges []float64
	// Choices is the number of values of an axis without order, which divide
	// it evenly; 0 for other axes.
	Choices int
	// Grain is the width of the cells of an axis that has too many of them to
	// be worth telling apart: it is continuous here, but no kernel is narrower
	// than the deviation within a cell. 0 is no bound.
	Grain float64
}

// Even returns the edges of n cells of the same width.
func Even(n int) []float64 {
	edges := make([]float64, n+1)
	for i := range edges {
		edges[i] = float64(i) / float64(n)
	}
	return edges
}

// cell returns the index of the cell or choice in which u lies.
func (a *Axis) cell(u float64) int {
	if a.Choices > 0 {
		return min(max(int(u*float64(a.Choices)), 0), a.Choices-1)
	}
	i, found := slices.BinarySearch(a.Edges, u)
	if !found {
		i--
	}
	return min(max(i, 0), len(a.Edges)-2)
}

// middle returns the coordinate that stands for a cell or choice.
func (a *Axis) middle(cell int) float64 {
	if a.Choices > 0 {
		return (float64(cell) + 0.5) / float64(a.Choices)
	}
	return (a.Edges[cell] + a.Edges[cell+1]) / 2
}

// coarse is the number of cells up to which an axis with an order has kernels
// of its own also where widths are joint.
const coarse = 8

// joins reports whether a joint covariance is to cover the axis.
func (a *Axis) joins() bool { return a.Choices == 0 && (a.Edges == nil || len(a.Edges) > coarse+1) }
