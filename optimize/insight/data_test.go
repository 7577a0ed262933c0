// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize"
)

// small is a search of four trials with a failed one between.
func small(t *testing.T, directions ...optimize.Direction) *optimize.History {
	t.Helper()
	space := mustSpace(t, optimize.Double("rate", 0.25, 4).Log(), optimize.Categorical("kind", "a", "b"), optimize.Int("size", 1, 4).When("kind", "b"))
	h := optimize.NewHistory(space, directions...)
	for i, text := range []string{"0.25 a", "0.5 b 3", "1 a", "0.5 b 1", "0.5 a"} {
		fields := strings.Fields(text)
		assignments := []optimize.Assignment{{Name: "rate", Value: fields[0]}, {Name: "kind", Value: fields[1]}}
		if len(fields) == 3 {
			assignments = append(assignments, optimize.Assignment{Name: "size", Value: fields[2]})
		}
		p, err := space.Parse(assignments)
		if err != nil {
			t.Fatal(err)
		}
		result := optimize.Values([]float64{3, 1, 4, 1, 5}[i])
		if len(directions) > 1 {
			result = optimize.Values([]float64{3, 1, 4, 1, 5}[i], []float64{2, 0, 5, 1, 9}[i])
		}
		if i == 2 {
			result = optimize.Result{State: optimize.Failed}
		}
		if i == 3 {
			result.Violations = []float64{0.5}
		}
		if err := h.Tell(h.Add(p), result); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// asJSON writes and reads a value, as what draws it will see it.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestData(t *testing.T) {
	t.Parallel()
	one, two := small(t, optimize.Maximize), small(t, optimize.Minimize, optimize.Maximize)
	convergence, err := Convergence(one, 0)
	if err != nil {
		t.Fatal(err)
	}
	distribution, err := Distribution(one, 0)
	if err != nil {
		t.Fatal(err)
	}
	slice, err := SliceOf(one, "size", 0)
	if err != nil {
		t.Fatal(err)
	}
	front, err := ParetoFront(two, []float64{6, 0})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason string
		got    any
		want   string
	}{
		"Convergence": {
			"What is not feasible is not the best.", convergence,
			`[{"trial":0,"value":3,"feasible":true,"best":3},{"trial":1,"value":1,"feasible":true,"best":3},` +
				`{"trial":3,"value":1,"feasible":false,"best":3},{"trial":4,"value":5,"feasible":true,"best":5}]`,
		},
		"Distribution": {
			"Equal values are one step.", distribution,
			`[{"value":1,"part":0.5},{"value":3,"part":0.75},{"value":5,"part":1}]`,
		},
		"Slice": {
			"A parameter that does not exist has no point.", slice,
			`{"axis":{"name":"size","kind":"int","min":1,"max":4,"log":false},"points":[{"trial":1,"value":3,"objective":1},{"trial":3,"value":1,"objective":1}]}`,
		},
		"Front": {
			"Trials 0, 1 and 4 trade; 3 is not feasible. Up to (6, 0): 3 of 3·2, then 1·9 with 1·2 in both, and nothing for no gain.", front,
			`{"trials":[0,1,4],"values":[[3,2],[1,0],[5,9]],"reference":[6,0],"hypervolume":13,` +
				`"history":[{"trial":0,"hypervolume":6},{"trial":1,"hypervolume":6},{"trial":3,"hypervolume":6},{"trial":4,"hypervolume":13}]}`,
		},
		"Row": {
			"What does not exist is null; the worst of four has rank 1, and equals share.", Tabulate(one).Rows[:2],
			`[{"trial":0,"values":[0.25,"a",null],"unit":[0,0.25,null],"objectives":[3],"ranks":[0.3333333333333333],"feasible":true},` +
				`{"trial":1,"values":[0.5,"b",3],"unit":[0.25,0.75,0.625],"objectives":[1],"ranks":[0.8333333333333334],"feasible":true}]`,
		},
		"Axes": {
			"An axis says how to draw it.", Tabulate(one).Axes[:2],
			`[{"name":"rate","kind":"double","min":0.25,"max":4,"log":true},{"name":"kind","kind":"categorical","min":0,"max":0,"log":false,"values":["a","b"]}]`,
		},
		"Numbers": {
			"JSON has no infinite numbers.", numbers([]float64{1.5, math.Inf(1), math.Inf(-1), math.NaN()}),
			`[1.5,"Infinity","-Infinity",null]`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, asJSON(t, tc.got)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	want := numbers([]float64{1.5, math.Inf(1), math.Inf(-1)})
	var got []Number
	if err := json.Unmarshal([]byte(asJSON(t, want)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers read back: -want, +got:\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`["x"]`), &got); err == nil {
		t.Errorf("a text reads as %v: want an error", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	h := small(t)
	m := fit(t, h)
	_, nothing := Fit(optimize.NewHistory(h.Space()), Options{})
	if !errors.Is(nothing, ErrTooFew) {
		t.Errorf("Fit of no trials: %v: want ErrTooFew", nothing)
	}
	wrong := map[string]func() error{
		"objective is 1":     func() error { _, err := Fit(h, Options{Objective: 1}); return err },
		"objective is -1":    func() error { _, err := Convergence(h, -1); return err },
		"objective is 7":     func() error { _, err := Distribution(h, 7); return err },
		`no parameter "x"`:   func() error { _, err := m.Response("x"); return err },
		"and itself":         func() error { _, err := m.Contour("rate", "rate"); return err },
		`no parameter "y"`:   func() error { _, err := SliceOf(h, "y", 0); return err },
		"reference has 2":    func() error { _, err := ParetoFront(h, []float64{1, 2}); return err },
		"fewer than two":     func() error { _, err := PEDANOVA(optimize.NewHistory(h.Space()), Options{}); return err },
		"no parameter \"z\"": func() error { _, err := m.Contour("rate", "z"); return err },
	}
	for want, call := range wrong {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v: want one that says %q", err, want)
		}
	}
}

// TestResponse checks that responses and contours follow the objective.
func TestResponse(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Categorical("k", "p", "q"), optimize.Double("z", 0, 1).When("k", "q"))
	h := searched(t, space, 1000, 3, func(p optimize.Point) float64 {
		if p.Active("z") {
			return 100 + 10*p.Float("x") + 20*p.Float("z")
		}
		return 100 + 10*p.Float("x")
	})
	m := fit(t, h)
	r, err := m.Response("x")
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range r.At {
		if want := 105 + 10*at.Number; math.Abs(float64(r.Mean[i])-want) > 2 {
			t.Errorf("response to x at %v is %v: want %v", at.Number, r.Mean[i], want)
		}
	}
	c, err := m.Contour("z", "k")
	if err != nil {
		t.Fatal(err)
	}
	for i, z := range c.AtX {
		if exists := float64(c.Mean[i][0]); exists == exists {
			t.Errorf("contour at z = %v, k = p is %v: want none", z.Number, exists)
		}
		if want := 105 + 20*z.Number; math.Abs(float64(c.Mean[i][1])-want) > 3 {
			t.Errorf("contour at z = %v, k = q is %v: want %v", z.Number, c.Mean[i][1], want)
		}
	}
}

// TestHostile checks that whatever the values, everything returns, shares are
// shares, and all can be written as JSON.
func TestHostile(t *testing.T) {
	t.Parallel()
	space := nested(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := optimize.NewHistory(space, optimize.Minimize, optimize.Maximize)
		value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e308, -1e308, 0, 5e-324}))
		unit := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(0.5)), space.Len(), space.Len())
		for range rapid.IntRange(0, 8).Draw(rt, "trials") {
			i := h.Add(space.Quantile(unit.Draw(rt, "point")))
			if err := h.Tell(i, optimize.Values(value.Draw(rt, "first"), value.Draw(rt, "second"))); err != nil {
				rt.Fatal(err)
			}
		}
		front, err := ParetoFront(h, nil)
		if err != nil {
			rt.Fatal(err)
		}
		results := []any{front, Tabulate(h)}
		shares, err := PEDANOVA(h, Options{Objective: 1})
		if m, errFit := Fit(h, Options{Objective: 1}); errFit == nil && err == nil {
			shares = append(shares, m.Importance()...)
			for _, pair := range m.Interactions() {
				shares = append(shares, Share{fmt.Sprint(pair.Names), pair.Share})
			}
			contour, err := m.Contour("rate", "size")
			if err != nil {
				rt.Fatal(err)
			}
			results = append(results, contour)
		} else if !errors.Is(errFit, ErrTooFew) || !errors.Is(err, ErrTooFew) {
			rt.Fatalf("errors %v and %v: want both or none", errFit, err)
		}
		for _, s := range shares {
			if !(s.Share >= 0 && s.Share <= 1) {
				rt.Fatalf("share of %s is %v: want one from 0 to 1", s.Name, s.Share)
			}
		}
		for _, each := range results {
			if _, err := json.Marshal(each); err != nil {
				rt.Fatal(err)
			}
		}
	})
}
