// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"cmp"
	"math"
	"slices"
)

// gallagher is the greatest of many Gaussian peaks at random places: 101 of
// them as function 21, 21 as function 22.
func (s *bbob) gallagher() func([]float64) float64 {
	peaks, spread, first := 101, 10.0, math.Sqrt(1000.0)
	if s.number == 22 {
		peaks, spread, first = 21, 9.8, 1000
	}
	heights, scales := s.peakShapes(peaks, first)
	numbers := bbobUniform(peaks*s.d, s.seed)
	centres := make([][]float64, peaks)
	for k := range centres {
		at := make([]float64, s.d)
		for j := range at {
			if at[j] = spread*numbers[k*s.d+j] - spread/2; k == 0 { // the optimum
				at[j] *= 0.8
			}
		}
		if k == 0 {
			copy(s.optimum, at)
		}
		centres[k] = s.q.times(at)
	}
	return func(x []float64) float64 {
		rotated := s.q.times(x)
		highest := 0.0
		for k, centre := range centres {
			distance := sum(centre, func(j int, c float64) float64 { return scales[k][j] * (rotated[j] - c) * (rotated[j] - c) })
			highest = math.Max(highest, heights[k]*math.Exp(-0.5/float64(s.d)*distance))
		}
		return math.Pow(oscillated(10-highest), 2)
	}
}

// peakShapes returns the height of each peak, and how steep it is along each
// axis. The first is the highest.
func (s *bbob) peakShapes(peaks int, first float64) (heights []float64, scales [][]float64) {
	heights, scales = make([]float64, peaks), make([][]float64, peaks)
	order := ranking(bbobUniform(peaks-1, s.seed))
	for k := range heights {
		height, steepness := 10.0, first
		if k > 0 {
			height = 1.1 + float64(k-1)/float64(peaks-2)*(9.1-1.1)
			steepness = math.Pow(1000, float64(order[k-1])/float64(peaks-2))
		}
		heights[k], scales[k] = height, make([]float64, s.d)
		for j, rank := range ranking(bbobUniform(s.d, s.seed+int64(1000*k))) {
			scales[k][j] = math.Pow(steepness, part(rank, s.d)-0.5)
		}
	}
	return heights, scales
}

// ranking returns the indices of some numbers in their order.
func ranking(numbers []float64) []int {
	order := make([]int, len(numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	return order
}
