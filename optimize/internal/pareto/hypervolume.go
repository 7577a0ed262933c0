// SPDX-License-Identifier: Apache-2.0

package pareto

import (
	"cmp"
	"math"
	"slices"
)

// Reference returns a reference point for some losses: in each objective, the
// worst finite loss and a tenth of the range of the finite ones beyond it (a
// tenth of the loss itself where they are all equal), so that each finite row
// is strictly better than it.
func Reference(losses [][]float64) []float64 {
	if len(losses) == 0 {
		return nil
	}
	reference := make([]float64, len(losses[0]))
	column := make([]float64, len(losses))
	for k := range reference {
		for i, row := range losses {
			column[i] = row[k]
		}
		lo, hi := finiteRange(column)
		margin := hi/10 - lo/10
		if margin == 0 {
			margin = math.Max(math.Abs(hi)/10, 1e-9)
		}
		reference[k] = math.Min(math.Max(hi+margin, math.Nextafter(hi, math.Inf(1))), math.MaxFloat64)
	}
	return reference
}

// Hypervolume returns the volume of what the points dominate as far as the
// reference, exactly. Points that are not better than it in every loss add
// nothing. It is +Inf where the box that holds the points and the reference is
// larger than a float64 can say.
//
// One and two losses take n log n, three n² at worst, and each further one n
// times as long: it is the algorithm of While, Bradstreet and Barone ("A fast
// way of calculating exact hypervolumes", 2012), which slices by the last loss
// and ends in a sweep of the plane.
func Hypervolume(points [][]float64, reference []float64) float64 {
	inside := within(points, reference)
	if len(inside) == 0 {
		return 0
	}
	if math.IsInf(boxVolume(inside, reference), 1) {
		return math.Inf(1)
	}
	return volume(inside, reference)
}

// Contributions returns for each point by how much the hypervolume would
// shrink without it. That is 0 for one that another dominates or equals.
func Contributions(points [][]float64, reference []float64) []float64 {
	contributions := make([]float64, len(points))
	inside := within(points, reference)
	if len(inside) == 0 {
		return contributions
	}
	size, compute := boxVolume(inside, reference), points
	unit := reference
	if math.IsInf(size, 1) {
		compute, unit = unitBox(points, reference)
	}
	for i, p := range compute {
		if !better(p, unit) {
			continue
		}
		others := make([][]float64, 0, len(compute)-1)
		for k, q := range compute {
			if k != i && better(q, unit) {
				others = append(others, q)
			}
		}
		contributions[i] = exclusive(p, others, unit)
		if math.IsInf(size, 1) && contributions[i] > 0 {
			contributions[i] = math.Inf(1)
		}
	}
	return contributions
}

// Select returns the indices of k points that together have nearly the largest
// hypervolume: each next one is that which adds most, the first of equals, and
// so at least 1 - 1/e of what the best k have. Where no point adds anything,
// the others follow by index. There are len(points) indices if k is more.
func Select(points [][]float64, reference []float64, k int) []int {
	points, reference = unitBox(points, reference)
	k = min(k, len(points))
	// gain[i] is what point i added when fewer points were selected; it adds
	// no more now, so that most need not be computed again.
	gain := make([]float64, len(points))
	current := make([]bool, len(points))
	for i, p := range points {
		if better(p, reference) {
			gain[i] = box(p, reference)
		}
		current[i] = true
	}
	var selected []int
	var rows [][]float64
	for len(selected) < k {
		best := greatest(gain)
		if !current[best] {
			gain[best], current[best] = exclusive(points[best], rows, reference), true
			continue
		}
		if gain[best] > 0 {
			rows = append(rows, points[best])
		}
		selected = append(selected, best)
		gain[best] = math.Inf(-1)
		for i := range current {
			current[i] = gain[i] <= 0
		}
	}
	return selected
}

func greatest(numbers []float64) int {
	best := 0
	for i, v := range numbers {
		if v > numbers[best] {
			best = i
		}
	}
	return best
}

// exclusive returns the volume that p dominates and no other does.
func exclusive(p []float64, others [][]float64, reference []float64) float64 {
	return math.Max(box(p, reference)-volume(limited(others, p), reference), 0)
}

// limited returns what the points dominate of what p dominates: the corner of
// each one's part, less those that another dominates.
func limited(points [][]float64, p []float64) [][]float64 {
	corners := make([][]float64, len(points))
	numbers := make([]float64, len(points)*len(p))
	for i, q := range points {
		corner := numbers[i*len(p) : (i+1)*len(p)]
		for k := range p {
			corner[k] = math.Max(p[k], q[k])
		}
		corners[i] = corner
	}
	return nondominated(corners)
}

// nondominated returns one of each of the rows that no other dominates.
func nondominated(rows [][]float64) [][]float64 {
	var kept [][]float64
	for _, row := range rows {
		if slices.ContainsFunc(kept, func(q []float64) bool { return covers(q, row) }) {
			continue
		}
		kept = slices.DeleteFunc(kept, func(q []float64) bool { return covers(row, q) })
		kept = append(kept, row)
	}
	return kept
}

// covers reports whether a is in no loss worse than b.
func covers(a, b []float64) bool {
	for k := range a {
		if a[k] > b[k] {
			return false
		}
	}
	return true
}

// better reports whether p is better than the reference in every loss.
func better(p, reference []float64) bool {
	for k := range reference {
		if !(p[k] < reference[k]) {
			return false
		}
	}
	return true
}

func within(points [][]float64, reference []float64) [][]float64 {
	var inside [][]float64
	for _, p := range points {
		if better(p, reference) {
			inside = append(inside, p)
		}
	}
	return inside
}

// box returns the volume of the box between p and the reference.
func box(p, reference []float64) float64 {
	v := 1.0
	for k := range reference {
		v *= reference[k] - p[k]
	}
	return v
}

// boxVolume returns the volume of the smallest box that holds the points and
// the reference, +Inf if a side of it is infinite.
func boxVolume(points [][]float64, reference []float64) float64 {
	v := 1.0
	for k := range reference {
		side := 0.0
		for _, p := range points {
			side = math.Max(side, reference[k]-p[k])
		}
		if math.IsInf(side, 1) {
			return side
		}
		v *= side
	}
	return v
}

// unitBox maps the points to where the best finite loss is 0 and the reference
// 1, in each loss. A loss of -Inf becomes -1.
func unitBox(points [][]float64, reference []float64) (unit [][]float64, one []float64) {
	unit, one = make([][]float64, len(points)), make([]float64, len(reference))
	for i := range unit {
		unit[i] = make([]float64, len(reference))
	}
	column := make([]float64, len(points))
	for k, ref := range reference {
		one[k] = 1
		for i, p := range points {
			column[i] = math.Min(worst(p[k]), ref)
		}
		lo, _ := finiteRange(column)
		for i, v := range column {
			switch {
			case math.IsInf(v, -1):
				unit[i][k] = -1
			case v < ref && math.IsInf(ref, 1): // all finite losses are equally far from it
				unit[i][k] = 0
			case v < ref:
				unit[i][k] = fraction(v, lo, ref)
			default:
				unit[i][k] = 1
			}
		}
	}
	return unit, one
}

// volume is Hypervolume of points that are better than the reference, and in a
// box whose volume is finite.
func volume(points [][]float64, reference []float64) float64 {
	switch len(reference) {
	case 1:
		return lineVolume(points, reference)
	case 2:
		return planeVolume(points, reference)
	case 3:
		return spaceVolume(points, reference)
	}
	// With the worst in the last loss first, all that follow reach through the
	// whole of each slice, so that a slice is a problem with one loss less.
	last := len(reference) - 1
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b []float64) int { return cmp.Compare(b[last], a[last]) })
	shadows := make([][]float64, len(points))
	for i, p := range points {
		shadows[i] = p[:last]
	}
	sum := 0.0
	for i, p := range points {
		sum += (reference[last] - p[last]) * exclusive(shadows[i], shadows[i+1:], reference[:last])
	}
	return sum
}
