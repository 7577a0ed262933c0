// SPDX-License-Identifier: Apache-2.0

package pareto

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var inf = math.Inf(1)

// drawRows draws rows on a coarse grid, so that some are equal or share a loss.
func drawRows(rt *rapid.T, most int, special ...float64) [][]float64 {
	objectives := rapid.IntRange(1, 5).Draw(rt, "objectives")
	loss := rapid.Map(rapid.IntRange(0, 6), func(i int) float64 { return float64(i) })
	if special != nil {
		loss = rapid.OneOf(loss, rapid.SampledFrom(special))
	}
	return rapid.SliceOfN(rapid.SliceOfN(loss, objectives, objectives), 0, most).Draw(rt, "rows")
}

func TestFrontsByHand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		losses [][]float64
		want   []int
	}{
		"None":   {"No rows have no ranks.", nil, []int{}},
		"One":    {"One loss ranks by value, equals together.", [][]float64{{3}, {1}, {2}, {1}}, []int{2, 0, 1, 0}},
		"Two":    {"A chain behind a front of two.", [][]float64{{1, 4}, {4, 1}, {4, 4}, {5, 4}, {4, 4}}, []int{0, 0, 1, 2, 1}},
		"Three":  {"Better in one is not enough.", [][]float64{{1, 2, 3}, {1, 2, 4}, {0, 9, 9}, {2, 2, 4}}, []int{0, 1, 0, 2}},
		"Inf":    {"Infinite losses are worst and best.", [][]float64{{inf, 1}, {inf, inf}, {-inf, 2}, {0, 1}}, []int{1, 2, 0, 0}},
		"NaN":    {"What is not a number is as bad as +Inf.", [][]float64{{math.NaN(), 1}, {inf, 1}, {3, 1}}, []int{1, 1, 0}},
		"Inside": {"One behind two fronts of three losses.", [][]float64{{0, 0, 1}, {1, 1, 1}, {1, 0, 0}, {2, 2, 2}}, []int{0, 1, 0, 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Fronts(tc.losses)); diff != "" {
				t.Errorf("%s Fronts: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFronts compares with the definition: a rank is one more than the
// greatest rank of the rows that dominate it.
func TestFronts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRows(rt, 30, inf, -inf, math.NaN(), 1e308)
		got := Fronts(rows)
		for i := range rows {
			want := 0
			for k := range rows {
				if Dominates(rows[k], rows[i]) {
					want = max(want, got[k]+1)
				}
			}
			if got[i] != want {
				rt.Fatalf("row %d has rank %d: want %d", i, got[i], want)
			}
		}
	})
}

func TestConstrainedFronts(t *testing.T) {
	t.Parallel()
	losses := [][]float64{{0, 0}, {5, 5}, {6, 6}, {0, 0}, {9, 1}, {1, 1}}
	violations := []float64{2, 0, -1, 1, 0, 2}
	if diff := cmp.Diff([]int{3, 0, 1, 2, 0, 3}, ConstrainedFronts(losses, violations)); diff != "" {
		t.Errorf("ConstrainedFronts: -want, +got:\n%s", diff)
	}
	none := ConstrainedFronts(losses[:2], []float64{math.NaN(), 7})
	if diff := cmp.Diff([]int{1, 0}, none); diff != "" {
		t.Errorf("ConstrainedFronts without a feasible row: -want, +got:\n%s", diff)
	}
}

func TestViolation(t *testing.T) {
	t.Parallel()
	for want, violations := range map[float64][]float64{0: {-1, -inf, 0}, 3: {1, -5, 2}, inf: {-1, math.NaN()}} {
		if got := Violation(violations); got != want {
			t.Errorf("Violation(%v) = %v: want %v", violations, got, want)
		}
	}
}

func TestCrowding(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		front  [][]float64
		want   []float64
	}{
		"Empty":    {"Nothing is crowded.", nil, []float64{}},
		"Two":      {"Ends are alone.", [][]float64{{0, 1}, {1, 0}}, []float64{inf, inf}},
		"Four":     {"Neighbours' distances add up.", [][]float64{{0, 4}, {4, 0}, {1, 2}, {2, 1}}, []float64{inf, inf, 0.5 + 0.75, 0.75 + 0.5}},
		"Constant": {"A constant loss has no distances.", [][]float64{{0, 7}, {1, 7}, {4, 7}}, []float64{inf, 1, inf}},
		"Infinite": {"Infinite losses are as far as the range.", [][]float64{{-inf, inf}, {0, 2}, {1, 1}, {2, -inf}}, []float64{inf, 0.5 + 1, 1 + 1, inf}},
		"Huge":     {"Ranges do not overflow.", [][]float64{{-1.5e308}, {0}, {1.5e308}}, []float64{inf, 1, inf}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Crowding(tc.front)); diff != "" {
				t.Errorf("%s Crowding: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHypervolumeByHand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		points    [][]float64
		reference []float64
		want      float64
	}{
		"None":     {"Nothing dominates nothing.", nil, []float64{1, 1}, 0},
		"Line":     {"The best decides.", [][]float64{{3}, {1}, {7}}, []float64{5}, 4},
		"Stairs":   {"Three steps.", [][]float64{{1, 3}, {2, 2}, {3, 1}}, []float64{4, 4}, 6},
		"Behind":   {"A dominated point and an equal one add nothing.", [][]float64{{1, 1}, {2, 2}, {1, 1}}, []float64{3, 3}, 4},
		"Outside":  {"Nor does one beyond the reference.", [][]float64{{1, 1}, {0, 3}}, []float64{3, 3}, 4},
		"Cube":     {"Three unit arms around a corner.", [][]float64{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}, []float64{2, 2, 2}, 4},
		"Four":     {"Two boxes of 8 that share 4.", [][]float64{{0, 0, 0, 1}, {0, 0, 1, 0}}, []float64{2, 2, 2, 2}, 8 + 8 - 4},
		"Infinite": {"An infinite side.", [][]float64{{-inf, 0}}, []float64{1, 1}, inf},
		"Worst":    {"An infinitely bad point adds nothing.", [][]float64{{inf, -5}, {0, 0}}, []float64{1, 1}, 1},
		"NaN":      {"Nor does one that is no number.", [][]float64{{math.NaN(), -5}, {0, 0}}, []float64{1, 1}, 1},
		"Overflow": {"What is too large to say is infinite.", [][]float64{{-1e308, -1e308}}, []float64{0, 0}, inf},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Hypervolume(tc.points, tc.reference); got != tc.want {
				t.Errorf("%s Hypervolume = %v: want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// inclusionExclusion is the hypervolume by its definition: the volumes of all
// boxes, less those that each two share, and those that each three share, ….
func inclusionExclusion(points [][]float64, reference []float64) float64 {
	sum := 0.0
	for set := uint(1); set < 1<<len(points); set++ {
		volume := 1.0
		for k, ref := range reference {
			side := inf
			for i := range points {
				if set>>i&1 == 1 {
					side = min(side, max(ref-points[i][k], 0))
				}
			}
			volume *= side
		}
		if bits.OnesCount(set)%2 == 0 {
			volume = -volume
		}
		sum += volume
	}
	return sum
}

func TestHypervolume(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		points := drawRows(rt, 9)
		if len(points) == 0 {
			return
		}
		reference := rapid.SliceOfN(rapid.Float64Range(3, 7), len(points[0]), len(points[0])).Draw(rt, "reference")
		want, got := inclusionExclusion(points, reference), Hypervolume(points, reference)
		near(rt, "hypervolume", got, want)

		for i, contribution := range Contributions(points, reference) {
			without := slices.Delete(slices.Clone(points), i, i+1)
			near(rt, "contribution", contribution, want-inclusionExclusion(without, reference))
			if less := Hypervolume(without, reference); less > got+1e-9*got {
				rt.Fatalf("one point less makes %v of %v", less, got)
			}
		}
		shuffled := rapid.Permutation(points).Draw(rt, "shuffled")
		near(rt, "hypervolume of shuffled points", Hypervolume(shuffled, reference), want)
	})
}

func near(rt *rapid.T, what string, got, want float64) {
	rt.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want))) {
		rt.Fatalf("%s is %v: want %v", what, got, want)
	}
}

// TestSelect compares with the greedy choice by full recomputation.
func TestSelect(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		points := drawRows(rt, 12)
		if len(points) == 0 {
			return
		}
		reference := make([]float64, len(points[0]))
		for k := range reference {
			reference[k] = 6.5
		}
		k := rapid.IntRange(0, len(points)).Draw(rt, "k")
		selected := Select(points, reference, k)
		if len(selected) != k {
			rt.Fatalf("%d selected: want %d", len(selected), k)
		}
		var rows [][]float64
		for _, index := range selected {
			most := 0.0
			for _, p := range points {
				most = max(most, Hypervolume(append(slices.Clone(rows), p), reference))
			}
			rows = append(rows, points[index])
			near(rt, "hypervolume of the selected", Hypervolume(rows, reference), most)
		}
		slices.Sort(selected)
		if len(slices.Compact(selected)) != k {
			rt.Fatalf("%v are selected: want each once", selected)
		}
	})
}

// TestHostile checks that nothing panics and nothing is not a number.
func TestHostile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		special := []float64{inf, -inf, math.NaN(), 1e308, -1e308, math.MaxFloat64, -math.MaxFloat64, 5e-324}
		rows := drawRows(rt, 8, special...)
		if len(rows) == 0 {
			return
		}
		reference := Reference(rows)
		if rapid.Bool().Draw(rt, "any reference") {
			reference = rapid.SliceOfN(rapid.SampledFrom(special), len(rows[0]), len(rows[0])).Draw(rt, "reference")
		}
		numbers := append(Contributions(rows, reference), Hypervolume(rows, reference))
		numbers = append(append(numbers, Crowding(rows)...), Reference(rows)...)
		for _, v := range numbers {
			if math.IsNaN(v) {
				rt.Fatalf("%v of %v: want no NaN", numbers, rows)
			}
		}
		Select(rows, reference, len(rows))
	})
}

func TestReference(t *testing.T) {
	t.Parallel()
	rows := [][]float64{{0, 5, inf, 0}, {10, 5, inf, inf}, {4, 5, -inf, 2}}
	if diff := cmp.Diff([]float64{11, 5.5, 1e-9, 2.2}, Reference(rows)); diff != "" {
		t.Errorf("Reference: -want, +got:\n%s", diff)
	}
}
