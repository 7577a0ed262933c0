// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestUnit checks that Unit is the inverse of Quantile: exactly where values
// have an end, and up to rounding where they do not.
func TestUnit(t *testing.T) {
	t.Parallel()
	for _, p := range []Parameter{
		Double("x", -3, 7),
		Double("x", 1e-6, 10).Log(),
		Double("x", 0.5, 0.999).Distributed(ReverseLogUniform),
		Double("x", -2, 2).Distributed(Normal),
		Double("x", 0, 1).Around(0.9, 0.05),
		Double("x", 1e-4, 1).Log().Around(1e-2, 2),
		Double("x", 0.1, 0.95).By(0.1).Log(),
		Double("x", 0.1, 0.95).By(0.1).Distributed(ReverseLogUniform),
		Int("x", 1, 1000).Log(),
		Int("x", 1, 100).Distributed(LogNormal).By(7),
		Int("x", -5, 5).Distributed(Normal),
		Discrete("x", 0.1, 100, 1, 10),
		Categorical("x", "a", "b", "c"),
		Ordered("x", "low", "high"),
		Double("x", 3, 3),
		Double("x", -1e308, 1e308),
	} {
		space, err := NewSpace(p)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 101 {
			point := space.Quantile([]float64{float64(k) / 100})
			u := space.Unit(point)
			again := space.Quantile(u)
			if !(u[0] >= 0 && u[0] <= 1) || !near(again.at[0], point.at[0]) || p.List != nil && again.at[0] != point.at[0] {
				t.Errorf("%+v: %v is at %v, where %v is", p, point, u[0], again)
			}
		}
	}
}

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b))
}

// TestReverseLog checks that the density grows toward the maximum as that of
// a logarithm does toward the minimum.
func TestReverseLog(t *testing.T) {
	t.Parallel()
	log, reverse := newAxis(Double("x", 0.001, 1).Log()), newAxis(Double("x", 0.001, 1).Distributed(ReverseLogUniform))
	for _, u := range []float64{0, 0.1, 0.5, 0.75, 1} {
		if got, want := reverse.quantile(u), 1.001-log.quantile(1-u); !near(got, want) {
			t.Errorf("quantile(%v) = %v, want %v", u, got, want)
		}
	}
}

// TestAround checks the median and the deviation of a user's prior.
func TestAround(t *testing.T) {
	t.Parallel()
	a := newAxis(Double("x", 0, 1).Around(0.3, 0.01))
	if got := a.quantile(0.5); math.Abs(got-0.3) > 1e-9 {
		t.Errorf("median is %v, want 0.3", got)
	}
	if got := a.quantile(0.841344746); math.Abs(got-0.31) > 1e-6 {
		t.Errorf("one deviation above is %v, want 0.31", got)
	}
	logarithmic := newAxis(Double("x", 1e-6, 1).Log().Around(1e-3, 0.5))
	if got := logarithmic.quantile(0.5); math.Abs(got-1e-3) > 1e-9 {
		t.Errorf("median is %v, want 0.001", got)
	}
}

// TestDiscreteOrder checks that a list of numbers is in their order, whatever
// the order in which it is written.
func TestDiscreteOrder(t *testing.T) {
	t.Parallel()
	a := newAxis(Discrete("x", 10, 0.1, 1))
	for i, want := range []string{"0.1", "1", "10"} {
		u := (float64(i) + 0.5) / 3
		if got := a.format(a.quantile(u)); got != want {
			t.Errorf("quantile(%v) is %s, want %s", u, got, want)
		}
	}
}

func TestConditional(t *testing.T) {
	t.Parallel()
	space, err := NewSpace(
		Int("depth", 1, 3).When("model", "tree"),
		Categorical("model", "tree", "svm", "none"),
		Double("gamma", 0.25, 1).By(0.25).When("kernel", "rbf"),
		Categorical("kernel", "rbf", "linear").When("model", "svm"),
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	size, finite := space.Size()
	for n := range size {
		p := space.At(n)
		if space.Rank(p) != n {
			t.Errorf("%v at %d has rank %d", p, n, space.Rank(p))
		}
		got = append(got, p.String())
	}
	want := "depth=1 model=tree|depth=2 model=tree|depth=3 model=tree|" +
		"model=svm gamma=0.25 kernel=rbf|model=svm gamma=0.5 kernel=rbf|model=svm gamma=0.75 kernel=rbf|model=svm gamma=1 kernel=rbf|" +
		"model=svm kernel=linear|model=none"
	if text := strings.Join(got, "|"); !finite || text != want {
		t.Errorf("points are %s, want %s", text, want)
	}
	if _, err := space.Parse([]Assignment{{"model", "none"}, {"depth", "1"}}); err == nil || !strings.Contains(err.Error(), `"depth" has a value, but exists only where "model" is one of ["tree"]`) {
		t.Errorf("a value of a parameter that does not exist: %v", err)
	}
	if _, err := space.Parse([]Assignment{{"model", "tree"}}); err == nil || !strings.Contains(err.Error(), `"depth" has no value`) {
		t.Errorf("no value of a parameter that exists: %v", err)
	}
	p := space.At(0)
	if p.Active("kernel") || p.Text("kernel") != "" || !math.IsNaN(p.Float("gamma")) || !p.Active("depth") {
		t.Errorf("%v has values that it has not", p)
	}
}

func TestConditionalErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		parameters []Parameter
		want       string
	}{
		"Unknown":  {[]Parameter{Int("n", 1, 2).When("m", "1")}, `depends on "m", which is not in the space`},
		"Endless":  {[]Parameter{Double("x", 0, 1), Int("n", 1, 2).When("x", "0")}, "no end to its values"},
		"NoValue":  {[]Parameter{Int("m", 1, 2), Int("n", 1, 2).When("m", "3")}, "is not between 1 and 2"},
		"NoValues": {[]Parameter{Int("m", 1, 2), Int("n", 1, 2).When("m")}, "want at least one"},
		"Cycle":    {[]Parameter{Int("m", 1, 2).When("n", "1"), Int("n", 1, 2).When("m", "1")}, "depends on itself"},
	} {
		if _, err := NewSpace(tc.parameters...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestConstrained(t *testing.T) {
	t.Parallel()
	space, err := NewSpace(Int("a", 0, 9), Int("b", 0, 9))
	if err != nil {
		t.Fatal(err)
	}
	below := Constraint{Name: "a < b", Holds: func(p Point) bool { return p.Int("a") < p.Int("b") }}
	constrained, err := space.Constrained(below)
	if err != nil {
		t.Fatal(err)
	}
	size, finite := constrained.Size()
	if size != 45 || !finite {
		t.Errorf("%d points, finite %v: want 45", size, finite)
	}
	for n := range size {
		if p := constrained.At(n); !below.Holds(p) || constrained.Rank(p) != n {
			t.Errorf("%v is at %d", p, n)
		}
	}
	never := Constraint{Name: "never", Holds: func(Point) bool { return false }}
	for _, p := range []Parameter{Int("n", 0, 9), Double("x", 0, 1)} {
		s, err := NewSpace(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Constrained(never); !errors.Is(err, ErrInfeasible) || !strings.Contains(err.Error(), "never") {
			t.Errorf("constraint that nothing satisfies: %v", err)
		}
	}
}

// TestPareto compares the front with the definition.
func TestPareto(t *testing.T) {
	t.Parallel()
	space, err := NewSpace(Double("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		h := NewHistory(space, Minimize, Maximize)
		for range rapid.IntRange(0, 30).Draw(rt, "trials") {
			i := h.Add(space.Quantile([]float64{0.5}))
			values := rapid.SliceOfN(rapid.Float64Range(0, 3), 2, 2).Draw(rt, "values")
			if err := h.Tell(i, Values(math.Round(values[0]), math.Round(values[1]))); err != nil {
				rt.Fatal(err)
			}
		}
		front := map[int]bool{}
		for _, trial := range h.Pareto() {
			front[trial.Index] = true
		}
		for i := range h.Len() {
			dominated := false
			for j := range h.Len() {
				a, b := h.Trial(j).Values, h.Trial(i).Values
				dominated = dominated || a[0] <= b[0] && a[1] >= b[1] && (a[0] < b[0] || a[1] > b[1])
			}
			if front[i] == dominated {
				rt.Fatalf("trial %d is dominated: %v, and in the front: %v", i, dominated, front[i])
			}
		}
	})
}
