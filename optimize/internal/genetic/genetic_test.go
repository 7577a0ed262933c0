// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize/internal/random"
)

// TestEliteOrder checks that the order in which trials are added does not matter,
// and neither does whether they are added one by one.
func TestEliteOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var trials []Member
		for i := range rapid.IntRange(1, 60).Draw(rt, "trials") {
			m := Member{ID: i - 3, Violation: float64(max(0, rapid.IntRange(-3, 2).Draw(rt, "violation")))}
			for range 2 {
				m.Losses = append(m.Losses, float64(rapid.IntRange(0, 9).Draw(rt, "loss")))
			}
			trials = append(trials, m)
		}
		size := rapid.IntRange(2, 10).Draw(rt, "size")
		once, each := NewElite(size), NewElite(size)
		once.Add(trials...)
		for _, m := range rapid.Permutation(trials).Draw(rt, "order") {
			each.Add(m)
		}
		if diff := cmp.Diff(once.members, each.members); diff != "" {
			rt.Errorf("members at once, and one by one:\n%s", diff)
		}
		if once.members[0].ID != trials[Fittest(columns(trials))].ID {
			rt.Errorf("the best member is %d, the fittest trial %d", once.members[0].ID, trials[Fittest(columns(trials))].ID)
		}
	})
}

func columns(trials []Member) (losses [][]float64, violations []float64) {
	for _, m := range trials {
		losses, violations = append(losses, m.Losses), append(violations, m.Violation)
	}
	return losses, violations
}

// TestVariationStaysInside checks that variation does not leave the unit interval,
// and that a category becomes another one.
func TestVariationStaysInside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		numbers := random.New(rapid.Uint64().Draw(rt, "seed"), 0)
		index := rapid.Float64Range(0, 20).Draw(rt, "index")
		one, other := []float64{numbers.Float(), numbers.Float()}, []float64{numbers.Float(), numbers.Float()}
		child := Crossover(one, other, func(i int) bool { return i == 0 }, 1, index, numbers)
		if child[0] != other[0] {
			rt.Errorf("a whole coordinate is %v, want the other parent's, %v", child[0], other[0])
		}
		moved := Polynomial(one[0], index, numbers.Float() < 0.5, numbers.Float())
		count := rapid.Uint64Range(2, 100).Draw(rt, "count")
		cell := OtherCell(one[0], count, numbers)
		for _, u := range []float64{child[1], moved, cell} {
			if !(u >= 0 && u <= 1) {
				rt.Errorf("%v is not from 0 to 1", u)
			}
		}
		if n := float64(count); int(cell*n) == int(one[0]*n) {
			rt.Errorf("%v is the same of %d categories as %v", cell, count, one[0])
		}
	})
}
