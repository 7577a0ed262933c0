// SPDX-License-Identifier: Apache-2.0

package pareto

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Dominates reports whether a is worse than b in no loss and better in one.
func Dominates(a, b []float64) bool {
	better := false
	for i := range a {
		switch order(a[i], b[i]) {
		case 1:
			return false
		case -1:
			better = true
		}
	}
	return better
}

// order compares two losses: -1 when a is better, 1 when b is. A loss that is
// not a number is as bad as +Inf.
func order(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return cmp.Compare(worst(a), worst(b))
}

func worst(loss float64) float64 {
	if math.IsNaN(loss) {
		return math.Inf(1)
	}
	return loss
}

// Fronts returns the rank of each row: 0 for those that no other dominates, 1
// for those that only rows of rank 0 dominate, and so on. Equal rows have the
// same rank.
//
// It is the efficient non-dominated sort with binary search of Zhang et al.
// (2015): n log n comparisons for one and two objectives, and at most n² for
// more.
func Fronts(losses [][]float64) []int {
	ranks := make([]int, len(losses))
	var fronts [][]int
	// After sorting, only an earlier row can dominate a later one, and if one
	// of a front does, so does one of each front before it.
	for _, i := range lexicographic(losses) {
		rank := sort.Search(len(fronts), func(k int) bool { return !anyDominates(losses, fronts[k], i) })
		if rank == len(fronts) {
			fronts = append(fronts, nil)
		}
		fronts[rank] = append(fronts[rank], i)
		ranks[i] = rank
	}
	return ranks
}

// anyDominates reports whether a row of a front dominates row i, which follows
// all of them lexicographically.
func anyDominates(losses [][]float64, front []int, i int) bool {
	if len(losses[i]) <= 2 { // the last is the best of the front in the second loss
		return Dominates(losses[front[len(front)-1]], losses[i])
	}
	for _, k := range slices.Backward(front) { // the nearest are the likeliest
		if Dominates(losses[k], losses[i]) {
			return true
		}
	}
	return false
}

// lexicographic returns the indices of rows by first loss, then second, ….
func lexicographic(losses [][]float64) []int {
	indices := make([]int, len(losses))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(a, b int) int {
		for k := range losses[a] {
			if c := order(losses[a][k], losses[b][k]); c != 0 {
				return c
			}
		}
		return 0
	})
	return indices
}

// Violation returns by how much a result violates its constraints: the sum of
// its violations, each of which is 0 where the constraint holds. It is 0 for a
// feasible result; one that is not a number counts as +Inf.
func Violation(violations []float64) float64 {
	sum := 0.0
	for _, v := range violations {
		sum += math.Max(worst(v), 0)
	}
	return sum
}

// ConstrainedDominates reports whether a row dominates another by their losses
// where both are feasible, and otherwise by their violations, as
// [ConstrainedFronts] has it.
func ConstrainedDominates(a, b []float64, violationA, violationB float64) bool {
	switch {
	case violationA == 0 && violationB == 0:
		return Dominates(a, b)
	case violationA == 0 || violationB == 0:
		return violationA == 0
	}
	return violationA < violationB
}

// ConstrainedFronts returns the rank of each row where a feasible row, one
// whose violation is at most 0, dominates every other that is not, and of two
// that are not the one with the smaller violation dominates (Deb et al. 2002).
func ConstrainedFronts(losses [][]float64, violations []float64) []int {
	var feasible [][]float64
	var excess []float64
	for i, v := range violations {
		if worst(v) <= 0 {
			feasible = append(feasible, losses[i])
		} else {
			excess = append(excess, worst(v))
		}
	}
	slices.Sort(excess)
	excess = slices.Compact(excess)
	within, fronts := Fronts(feasible), 0
	if len(within) > 0 {
		fronts = slices.Max(within) + 1
	}
	ranks := make([]int, len(losses))
	for i, v := range violations {
		if worst(v) <= 0 {
			ranks[i], within = within[0], within[1:]
		} else {
			k, _ := slices.BinarySearch(excess, worst(v))
			ranks[i] = fronts + k
		}
	}
	return ranks
}

// Crowding returns the crowding distance of each row of a front (Deb et al.
// 2002): the sum over losses of the distance between its two neighbors, as a
// part of the range of the finite losses. The first and the last in some loss
// have +Inf. Infinite losses count as the end of the range.
func Crowding(front [][]float64) []float64 {
	distance := make([]float64, len(front))
	if len(front) == 0 {
		return distance
	}
	for k := range front[0] {
		column := make([]float64, len(front))
		for i, row := range front {
			column[i] = row[k]
		}
		unit := unitRange(column)
		indices := argsort(column)
		for at := 1; at < len(indices)-1; at++ {
			distance[indices[at]] += unit[indices[at+1]] - unit[indices[at-1]]
		}
		distance[indices[0]] = math.Inf(1)
		distance[indices[len(indices)-1]] = math.Inf(1)
	}
	return distance
}

// Standing returns the rank of each row by [ConstrainedFronts], and its crowding
// distance among those of the same rank.
func Standing(losses [][]float64, violations []float64) (ranks []int, crowding []float64) {
	ranks, crowding = ConstrainedFronts(losses, violations), make([]float64, len(losses))
	fronts := make(map[int][]int)
	for i, rank := range ranks {
		fronts[rank] = append(fronts[rank], i)
	}
	for _, front := range fronts {
		rows := make([][]float64, len(front))
		for k, i := range front {
			rows[k] = losses[i]
		}
		for k, distance := range Crowding(rows) {
			crowding[front[k]] = distance
		}
	}
	return ranks, crowding
}

func argsort(column []float64) []int {
	indices := make([]int, len(column))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(a, b int) int { return order(column[a], column[b]) })
	return indices
}

// unitRange maps the range of the finite numbers of a column to 0 … 1, and
// infinite ones to its ends.
func unitRange(column []float64) []float64 {
	lo, hi := finiteRange(column)
	unit := make([]float64, len(column))
	for i, v := range column {
		v = math.Min(math.Max(worst(v), lo), hi)
		if lo < hi {
			unit[i] = fraction(v, lo, hi)
		}
	}
	return unit
}

// fraction returns where v lies between lo and a greater hi, from 0 to 1.
func fraction(v, lo, hi float64) float64 {
	if math.IsInf(hi-lo, 1) {
		return (v/2 - lo/2) / (hi/2 - lo/2)
	}
	return (v - lo) / (hi - lo)
}

// finiteRange returns the least and the greatest finite number, 0 and 0 where
// there is none.
func finiteRange(column []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range column {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	if lo > hi {
		return 0, 0
	}
	return lo, hi
}
