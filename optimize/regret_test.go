// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize"
)

// around returns the history of random trials in a part of the space around a
// place in the unit cube.
func around(tb testing.TB, space *optimize.Space, h *optimize.History, place, size float64, n int, objective func(optimize.Point) float64) {
	tb.Helper()
	random, unit := optimize.NewRandom(uint64(h.Len())), make([]float64, space.Len())
	for range n {
		p, err := random.Sample(tb.Context(), h)
		if err != nil {
			tb.Fatal(err)
		}
		for i, u := range space.Unit(p) {
			unit[i] = math.Min(math.Max(place+size*(u-0.5), 0), 1)
		}
		p = space.Quantile(unit)
		if err := h.Tell(h.Add(p), optimize.Values(objective(p))); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestRegretBound checks that a search is told to end when it has converged and
// not before, and that the bound is one.
func TestRegretBound(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("a", -3, 3), optimize.Double("b", -3, 3), optimize.Int("c", 0, 9))
	functions := map[string]func(optimize.Point) float64{ // with a minimum of 5 in the middle
		"Bowl": func(p optimize.Point) float64 { return 5 + p.Float("a")*p.Float("a") + 3*p.Float("b")*p.Float("b") },
		"Valley": func(p optimize.Point) float64 {
			return 5 + math.Abs(p.Float("a")+p.Float("b")) + p.Float("b")*p.Float("b")
		},
		"Waves": func(p optimize.Point) float64 {
			return 6 - math.Cos(2*p.Float("a")) + p.Float("a")*p.Float("a") + p.Float("b")*p.Float("b")
		},
	}
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			least := 5.0
			for _, d := range []optimize.Direction{optimize.Minimize, optimize.Maximize} {
				sign := 1.0
				if d == optimize.Maximize {
					sign = -1
				}
				h := optimize.NewHistory(space, d)
				objective := func(p optimize.Point) float64 { return 1e6 * sign * f(p) }
				check := func(stage string, stop bool) {
					r, err := optimize.RegretBound(h, optimize.DefaultRegretConfig())
					if err != nil {
						t.Fatal(err)
					}
					best, _ := h.Best()
					if regret := sign*best.Value() - 1e6*least; r.Bound < regret {
						t.Errorf("%s: bound is %v: want at least the regret %v", stage, r.Bound, regret)
					}
					if r.Stop != stop {
						t.Errorf("%s: %+v: want stop %v", stage, r, stop)
					}
				}
				around(t, space, h, 0.5, 1, 19, objective)
				check("too few", false)
				around(t, space, h, 0.5, 1, 11, objective)
				check("fresh", false)
				around(t, space, h, 0.5, 0.2, 30, objective)
				around(t, space, h, 0.5, 0.02, 30, objective)
				around(t, space, h, 0.5, 0.001, 20, objective)
				check("converged", true)
			}
		})
	}
}

// TestRegretWorth checks that what is not worth having ends a search.
func TestRegretWorth(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("a", 0, 1), optimize.Double("b", 0, 1))
	h := optimize.NewHistory(space)
	around(t, space, h, 0.5, 1, 30, func(p optimize.Point) float64 { return p.Float("a") + p.Float("b") })
	c := optimize.DefaultRegretConfig()
	for worth, stop := range map[float64]bool{1e-9: false, 100: true} {
		c.Worth = worth
		if r, err := optimize.RegretBound(h, c); err != nil || r.Stop != stop || r.Worth != worth {
			t.Errorf("worth %v: %+v, %v: want stop %v", worth, r, err, stop)
		}
	}
	known := optimize.NewHistory(space)
	for i := range h.Len() {
		if err := known.AddKnown(h.Trial(i).Point, h.Trial(i).Result); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := optimize.RegretBound(known, c); err != nil || math.IsInf(r.Bound, 1) {
		t.Errorf("of known results: %+v, %v: want a bound", r, err)
	}
}

func TestRegretErrors(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1))
	one, two := optimize.NewHistory(space), optimize.NewHistory(space, optimize.Minimize, optimize.Minimize)
	good := optimize.DefaultRegretConfig()
	for want, change := range map[string]func(*optimize.RegretConfig){
		"MinTrials is 1": func(c *optimize.RegretConfig) { c.MinTrials = 1 },
		"Part is 0":      func(c *optimize.RegretConfig) { c.Part = 0 },
		"Risk is NaN":    func(c *optimize.RegretConfig) { c.Risk = math.NaN() },
		"Worth is -1":    func(c *optimize.RegretConfig) { c.Worth = -1 },
	} {
		c := good
		change(&c)
		if _, err := optimize.RegretBound(one, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("RegretBound: %v: want an error that says %q", err, want)
		}
	}
	if _, err := optimize.RegretBound(two, good); err == nil || !strings.Contains(err.Error(), "one objective") {
		t.Errorf("RegretBound of two objectives: %v: want an error that says so", err)
	}
}

func TestRegretHostile(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Categorical("k", "a", "b"), optimize.Int("n", 1, 1), optimize.Double("y", 0, 1).When("k", "b"))
	value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e308, -1e308, 0, 5e-324}))
	c := optimize.DefaultRegretConfig()
	c.MinTrials = 2
	rapid.Check(t, func(rt *rapid.T) {
		h := optimize.NewHistory(space)
		for range rapid.IntRange(0, 12).Draw(rt, "trials") {
			u := rapid.SliceOfN(rapid.Float64Range(0, 1), 4, 4).Draw(rt, "point")
			if err := h.Tell(h.Add(space.Quantile(u)), optimize.Values(value.Draw(rt, "value"))); err != nil {
				rt.Fatal(err)
			}
		}
		r, err := optimize.RegretBound(h, c)
		if err != nil || !(r.Bound >= 0) || !(r.Worth >= 0) {
			rt.Fatalf("%+v, %v: want a bound", r, err)
		}
	})
}

// Ends a search when what it may still find is not worth having.
func ExampleRegretBound() {
	space, err := optimize.NewSpace(optimize.Double("x", -5, 5), optimize.Double("y", -5, 5))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.New("bayesianoptimization", nil, optimize.Problem{Space: space, Seed: 1})
	if err != nil {
		panic(err)
	}
	history := optimize.NewHistory(space)
	for history.Len() < 200 {
		p, err := sampler.Sample(context.Background(), history)
		if err != nil {
			panic(err)
		}
		loss := math.Pow(p.Float("x")-1, 2) + math.Pow(p.Float("y")+2, 2)
		if err := history.Tell(history.Add(p), optimize.Values(loss)); err != nil {
			panic(err)
		}
		regret, err := optimize.RegretBound(history, optimize.DefaultRegretConfig())
		if err != nil {
			panic(err)
		}
		if regret.Stop {
			break
		}
	}
	best, _ := history.Best()
	fmt.Printf("ended before 200: %v, nothing worth 0.1 is missed: %v\n", history.Len() < 200, best.Value() < 0.1)
	// Output: ended before 200: true, nothing worth 0.1 is missed: true
}
