// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTPEGood(t *testing.T) {
	t.Parallel()
	optuna := TPEConfig{Gamma: 0.1, MinGood: 1, MaxGood: 25}
	hyperopt := TPEConfig{Gamma: 0.25, Root: true, MinGood: 1, MaxGood: 25}
	for _, test := range []struct {
		reason string
		config TPEConfig
		n      []int
		want   []int
	}{
		{"Optuna: ⌈0.1·n⌉, at most 25.", optuna, []int{1, 10, 11, 200, 250, 251, 10_000}, []int{1, 1, 2, 20, 25, 25, 25}},
		{"hyperopt: ⌈0.25·√n⌉, at most 25.", hyperopt, []int{1, 16, 17, 100, 10_000, 20_000}, []int{1, 1, 2, 3, 25, 25}},
		{"No more than there are.", DefaultTPEConfig(), []int{0, 1, 3, 10, 200}, []int{0, 1, 3, 4, 20}},
	} {
		var got []int
		for _, n := range test.n {
			got = append(got, test.config.good(n))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s good(%v) = %v, want %v", test.reason, test.n, got, test.want)
		}
	}
}

func testHistory(t *testing.T, directions ...Direction) *History {
	t.Helper()
	space, err := NewSpace(Double("x", 0, 1), Categorical("c", "a", "b"), Double("y", 0, 1).When("c", "b"))
	if err != nil {
		t.Fatal(err)
	}
	return NewHistory(space, directions...)
}

// grow adds and tells random trials.
func grow(rt *rapid.T, h *History) {
	p := h.space.Quantile([]float64{rapid.Float64Range(0, 1).Draw(rt, "x"), rapid.Float64Range(0, 1).Draw(rt, "c"), rapid.Float64Range(0, 1).Draw(rt, "y")})
	r := Result{State: Complete}
	for range h.directions {
		r.Values = append(r.Values, float64(rapid.IntRange(0, 3).Draw(rt, "value")))
	}
	switch rapid.IntRange(0, 8).Draw(rt, "kind") {
	case 0:
		h.AddLost()
		return
	case 1:
		h.Add(p)
		return
	case 2:
		r = Result{State: Failed}
	case 3:
		r.State, r.Step = Stopped, rapid.IntRange(0, 3).Draw(rt, "step")
	case 4:
		r.Violations = []float64{float64(rapid.IntRange(0, 2).Draw(rt, "violation"))}
	case 5:
		if err := h.AddKnown(p, r); err != nil {
			rt.Fatal(err)
		}
		return
	}
	if err := h.Tell(h.Add(p), r); err != nil {
		rt.Fatal(err)
	}
}

// Following a history step by step comes to the same as reading it at once.
func TestTPEEvidenceIncremental(t *testing.T) {
	t.Parallel()
	for name, directions := range map[string][]Direction{"one": {Maximize}, "two": {Minimize, Maximize}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				h := testHistory(t, directions...)
				step := newTPEEvidence(h)
				for range rapid.IntRange(0, 40).Draw(rt, "trials") {
					grow(rt, h)
					if rapid.Bool().Draw(rt, "look") {
						step.update()
					}
				}
				step.update()
				once := newTPEEvidence(h)
				once.update()
				count := DefaultTPEConfig().good
				one, other := step.split(count, 10), once.split(count, 10)
				options := cmp.AllowUnexported(tpeWeighted{})
				if diff := cmp.Diff(one.good, other.good, options) + cmp.Diff(one.bad, other.bad, options); diff != "" {
					rt.Fatal(diff)
				}
			})
		})
	}
}

// Complete trials are before stopped ones, those before violating ones, and
// what failed is never good.
func TestTPERanking(t *testing.T) {
	t.Parallel()
	h := testHistory(t)
	for _, r := range []Result{
		{State: Failed},
		{State: Complete, Values: []float64{-9}, Violations: []float64{2}},
		{State: Complete, Values: []float64{7}, Violations: []float64{-1}},
		{State: Stopped, Values: []float64{1}, Step: 3},
		{State: Stopped, Values: []float64{2}, Step: 5},
		{State: Stopped, Values: []float64{0}, Step: 5},
		{State: Complete, Values: []float64{math.Inf(1)}},
		{State: Complete, Values: []float64{5}},
		{State: Complete, Values: []float64{-9}, Violations: []float64{1, -5}},
		{State: Infeasible},
		{State: Stopped, Step: 5},
	} {
		if err := h.Tell(h.Add(h.space.Quantile([]float64{0.5, 0.2, 0})), r); err != nil {
			t.Fatal(err)
		}
	}
	pending := h.Add(h.space.Quantile([]float64{0.1, 0.2, 0}))
	e := newTPEEvidence(h)
	e.update()
	d := e.split(func(n int) int { return n }, 100)
	ids := func(trials []tpeWeighted) (ids []int) {
		for _, t := range trials {
			ids = append(ids, t.id)
		}
		return ids
	}
	if diff := cmp.Diff([]int{7, 2, 6, 5, 4, 10, 3, 8, 1}, ids(d.good)); diff != "" {
		t.Errorf("good trials: %s", diff)
	}
	if diff := cmp.Diff([]int{0, 9, pending}, ids(d.bad)); diff != "" {
		t.Errorf("other trials: %s", diff)
	}
}

// Of the front that is divided, those are good that together have the most
// hypervolume: the knee and the ends and not what crowds.
func TestTPEFrontSelection(t *testing.T) {
	t.Parallel()
	h := testHistory(t, Minimize, Minimize)
	for _, v := range [][]float64{{3, 3}, {0, 1}, {1, 0}, {0.2, 0.2}, {0.21, 0.19}, {0.19, 0.21}} {
		if err := h.Tell(h.Add(h.space.Quantile([]float64{0.5, 0.2, 0})), Values(v...)); err != nil {
			t.Fatal(err)
		}
	}
	e := newTPEEvidence(h)
	e.update()
	var good []int
	for _, t := range e.split(func(int) int { return 3 }, 100).good {
		good = append(good, t.id)
	}
	if slices.Sort(good); !slices.Equal(good, []int{1, 2, 3}) {
		t.Errorf("good are %v: want the knee 3 and the ends 1 and 2", good)
	}
}

func TestTPEThin(t *testing.T) {
	t.Parallel()
	const most = 100
	for _, n := range []int{0, 1, most, most + 1, 1000, 10_000} {
		thinned, sum := tpeThin(n, most, func(k int) int { return k }), 0.0
		last := -1
		for _, t := range thinned {
			sum += t.weight
			if t.id > last {
				last = t.id
			} else {
				last = n // not rising
			}
		}
		if len(thinned) > most || math.Abs(sum-float64(n)) > 1e-6 || last >= n && n > 0 {
			t.Errorf("of %d trials %d are left with the weight %v, the last %d", n, len(thinned), sum, last)
		}
	}
}
