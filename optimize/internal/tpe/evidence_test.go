// SPDX-License-Identifier: Apache-2.0

package tpe

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// draw returns the change that a random trial or known result makes to evidence.
func draw(rt *rapid.T, objectives int) func(*Evidence) {
	point := []float64{rapid.Float64Range(0, 1).Draw(rt, "x"), rapid.Float64Range(0, 1).Draw(rt, "y")}
	var r Result
	for range objectives {
		r.Losses = append(r.Losses, float64(rapid.IntRange(0, 3).Draw(rt, "value")))
	}
	switch rapid.IntRange(0, 8).Draw(rt, "kind") {
	case 0:
		return func(e *Evidence) { e.Add(nil) }
	case 1:
		return func(e *Evidence) { e.Add(point) }
	case 2:
		r = Result{Failed: true}
	case 3:
		r.Stopped, r.Step = true, rapid.IntRange(0, 3).Draw(rt, "step")
	case 4:
		r.Violation = float64(rapid.IntRange(0, 2).Draw(rt, "violation"))
	case 5:
		return func(e *Evidence) { e.AddKnown(point, r) }
	}
	return func(e *Evidence) {
		e.Add(point)
		e.Tell(len(e.trials)-1, r)
	}
}

// split divides trials with a tenth of them good.
func split(e *Evidence) Division {
	return e.Split(func(n int) int { return (n + 9) / 10 }, 10)
}

// A search that is looked at step by step comes to the same as one that is looked
// at once.
func TestEvidenceIncremental(t *testing.T) {
	t.Parallel()
	for name, objectives := range map[string]int{"one": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				step, once := NewEvidence(objectives), NewEvidence(objectives)
				for range rapid.IntRange(0, 40).Draw(rt, "trials") {
					change := draw(rt, objectives)
					change(step)
					change(once)
					if rapid.Bool().Draw(rt, "look") {
						split(step)
					}
				}
				one, other := split(step), split(once)
				options := cmp.AllowUnexported(weighted{})
				if diff := cmp.Diff(one.good, other.good, options) + cmp.Diff(one.bad, other.bad, options); diff != "" {
					rt.Fatal(diff)
				}
			})
		})
	}
}

// Complete trials are before stopped ones, those before violating ones, and
// what failed is never good.
func TestRanking(t *testing.T) {
	t.Parallel()
	e := NewEvidence(1)
	for i, r := range []Result{
		{Failed: true},
		{Losses: []float64{-9}, Violation: 2},
		{Losses: []float64{7}},
		{Stopped: true, Losses: []float64{1}, Step: 3},
		{Stopped: true, Losses: []float64{2}, Step: 5},
		{Stopped: true, Losses: []float64{0}, Step: 5},
		{Losses: []float64{1e300}},
		{Losses: []float64{5}},
		{Losses: []float64{-9}, Violation: 1},
		{Failed: true},
		{Stopped: true, Step: 5},
	} {
		e.Add([]float64{0.5})
		e.Tell(i, r)
	}
	pending, _ := e.Len()
	e.Add([]float64{0.1})
	d := e.Split(func(n int) int { return n }, 100)
	ids := func(trials []weighted) (ids []int) {
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
func TestFrontSelection(t *testing.T) {
	t.Parallel()
	e := NewEvidence(2)
	for i, losses := range [][]float64{{3, 3}, {0, 1}, {1, 0}, {0.2, 0.2}, {0.21, 0.19}, {0.19, 0.21}} {
		e.Add([]float64{0.5})
		e.Tell(i, Result{Losses: losses})
	}
	var good []int
	for _, t := range e.Split(func(int) int { return 3 }, 100).good {
		good = append(good, t.id)
	}
	if slices.Sort(good); !slices.Equal(good, []int{1, 2, 3}) {
		t.Errorf("good are %v: want the knee 3 and the ends 1 and 2", good)
	}
}

func TestThin(t *testing.T) {
	t.Parallel()
	const most = 100
	for _, n := range []int{0, 1, most, most + 1, 1000, 10_000} {
		thinned, sum := thin(n, most, func(k int) int { return k }), 0.0
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
