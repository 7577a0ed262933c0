// SPDX-License-Identifier: Apache-2.0

package pareto

import (
	"cmp"
	"slices"
	"sort"
)

// lineVolume is the hypervolume of one loss.
func lineVolume(points [][]float64, reference []float64) float64 {
	longest := 0.0
	for _, p := range points {
		longest = max(longest, reference[0]-p[0])
	}
	return longest
}

// planeVolume is the hypervolume of two losses: with the points sorted by the
// first, each adds a rectangle as high as it is better in the second than all
// before it.
func planeVolume(points [][]float64, reference []float64) float64 {
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b []float64) int { return cmp.Compare(a[0], b[0]) })
	sum, ceiling := 0.0, reference[1]
	for _, p := range points {
		if p[1] < ceiling {
			sum += (reference[0] - p[0]) * (ceiling - p[1])
			ceiling = p[1]
		}
	}
	return sum
}

// spaceVolume is the hypervolume of three losses: a plane sweeps through the
// third, and the area dominated on it grows with each point that it meets.
func spaceVolume(points [][]float64, reference []float64) float64 {
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b []float64) int { return cmp.Compare(a[2], b[2]) })
	stairs := staircase{reference: reference}
	sum, area := 0.0, 0.0
	for i, p := range points {
		area += stairs.add(p[0], p[1])
		next := reference[2]
		if i+1 < len(points) {
			next = points[i+1][2]
		}
		sum += area * (next - p[2])
	}
	return sum
}

// staircase is the front of some points of the plane, by x; y falls as x grows.
type staircase struct {
	reference []float64
	steps     []step
}

type step struct{ x, y float64 }

// add adds a point and returns by how much the area that the points dominate
// grows.
func (s *staircase) add(x, y float64) float64 {
	at := sort.Search(len(s.steps), func(i int) bool { return s.steps[i].x >= x })
	if at > 0 && s.steps[at-1].y <= y || at < len(s.steps) && s.steps[at].x == x && s.steps[at].y <= y {
		return 0
	}
	ceiling := s.reference[1]
	if at > 0 {
		ceiling = s.steps[at-1].y
	}
	area, left, end := 0.0, x, at // up to end the point dominates the steps
	for ; end < len(s.steps) && s.steps[end].y >= y; end++ {
		area += (s.steps[end].x - left) * (ceiling - y)
		left, ceiling = s.steps[end].x, s.steps[end].y
	}
	right := s.reference[0]
	if end < len(s.steps) {
		right = s.steps[end].x
	}
	s.steps = slices.Replace(s.steps, at, end, step{x, y})
	return area + (right-left)*(ceiling-y)
}
