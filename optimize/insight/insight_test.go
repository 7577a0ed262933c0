// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"math"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/internal/random"
)

func mustSpace(tb testing.TB, parameters ...optimize.Parameter) *optimize.Space {
	tb.Helper()
	space, err := optimize.NewSpace(parameters...)
	if err != nil {
		tb.Fatal(err)
	}
	return space
}

// searched returns the history of n random trials of an objective.
func searched(tb testing.TB, space *optimize.Space, n int, seed uint64, objective func(optimize.Point) float64, directions ...optimize.Direction) *optimize.History {
	tb.Helper()
	h := optimize.NewHistory(space, directions...)
	r := random.New(seed, 0)
	u := make([]float64, space.Len())
	for range n {
		for i := range u {
			u[i] = r.Float()
		}
		p := space.Quantile(u)
		if err := h.Tell(h.Add(p), optimize.Values(objective(p))); err != nil {
			tb.Fatal(err)
		}
	}
	return h
}

func cube(tb testing.TB, names ...string) *optimize.Space {
	var parameters []optimize.Parameter
	for _, name := range names {
		parameters = append(parameters, optimize.Double(name, 0, 1))
	}
	return mustSpace(tb, parameters...)
}

func fit(tb testing.TB, h *optimize.History) *Model {
	tb.Helper()
	m, err := Fit(h, Options{Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func byName(shares []Share) map[string]float64 {
	m := map[string]float64{}
	for _, s := range shares {
		m[s.Name] = s.Share
	}
	return m
}

// ishigami is the function of Ishigami and Homma (1990) with a = 7 and b = 0.1.
func ishigami(p optimize.Point) float64 {
	angle := func(name string) float64 { return math.Pi * (2*p.Float(name) - 1) }
	return math.Sin(angle("a")) + 7*math.Pow(math.Sin(angle("b")), 2) + 0.1*math.Pow(angle("c"), 4)*math.Sin(angle("a"))
}

// TestImportance compares with Sobol indices in closed form.
func TestImportance(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		space     *optimize.Space
		objective func(optimize.Point) float64
		want      map[string]float64
		tolerance float64
	}{
		"Linear": {
			"Shares are as the squares of the slopes: 16, 4, 1, 0 of 21.", cube(t, "a", "b", "c", "d"),
			func(p optimize.Point) float64 { return 4*p.Float("a") - 2*p.Float("b") + p.Float("c") },
			map[string]float64{"a": 16. / 21, "b": 4. / 21, "c": 1. / 21, "d": 0}, 0.04,
		},
		"Ishigami": {
			"Published indices; c acts through a alone.", cube(t, "a", "b", "c"),
			ishigami, map[string]float64{"a": 0.3139, "b": 0.4424, "c": 0}, 0.04,
		},
		"Scale": {
			"Values of any size do, and logarithms are seen as the search sees them.",
			mustSpace(t, optimize.Double("a", 1e-4, 1).Log(), optimize.Int("b", 1, 9)),
			func(p optimize.Point) float64 { return 1e307 * (math.Log10(p.Float("a")) + 0.4*float64(p.Int("b"))) },
			// Uniform over a width of 4, and the variance of 9 numbers, which is 80/12.
			map[string]float64{"a": 16. / (16 + 12.8), "b": 12.8 / (16 + 12.8)}, 0.03,
		},
		"Category": {
			"One category of four is better by 1: a variance of 3/16, beside 1/12.",
			mustSpace(t, optimize.Categorical("a", "w", "x", "y", "z"), optimize.Double("b", 0, 1)),
			func(p optimize.Point) float64 { return map[string]float64{"y": 1}[p.Text("a")] + p.Float("b") },
			map[string]float64{"a": 9. / 13, "b": 4. / 13}, 0.03,
		},
		"Constant": {
			"Where nothing matters nothing has a share.", cube(t, "a", "b"),
			func(optimize.Point) float64 { return 3 }, map[string]float64{"a": 0, "b": 0}, 0,
		},
		"Conditional": {
			// f is 0 or 1 + (2·b - 1) by a, so a's share is 1/4 of 1/4 + ½·⅓.
			"A parameter counts where it exists.",
			mustSpace(t, optimize.Categorical("a", "off", "on"), optimize.Double("b", 0, 1).When("a", "on"), optimize.Double("c", 0, 1).When("a", "off")),
			func(p optimize.Point) float64 {
				if p.Text("a") == "off" {
					return 0
				}
				return 2 * p.Float("b")
			},
			map[string]float64{"a": 0.25 / (0.25 + 1./6), "b": 1. / 6 / (0.25 + 1./6), "c": 0}, 0.04,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := byName(fit(t, searched(t, tc.space, 1500, 3, tc.objective)).Importance())
			for name, want := range tc.want {
				if math.Abs(got[name]-want) > tc.tolerance {
					t.Errorf("%s share of %s is %.3f: want %.3f ± %.3f", tc.reason, name, got[name], want, tc.tolerance)
				}
			}
			t.Log(got)
		})
	}
}

func TestInteractions(t *testing.T) {
	t.Parallel()
	got := fit(t, searched(t, cube(t, "a", "b", "c"), 1500, 3, ishigami)).Interactions()
	want := map[[2]string]float64{{"a", "c"}: 0.2437, {"a", "b"}: 0, {"b", "c"}: 0}
	for _, s := range got {
		if math.Abs(s.Share-want[s.Names]) > 0.05 {
			t.Errorf("interaction of %v is %.3f: want %.3f", s.Names, s.Share, want[s.Names])
		}
	}
	if len(got) != 3 || got[0].Names != [2]string{"a", "c"} {
		t.Errorf("interactions are %v: want that of a and c first of three", got)
	}
}

// nested is a space with parameters that depend on others in two ways.
func nested(tb testing.TB) *optimize.Space {
	return mustSpace(tb,
		optimize.Double("rate", 1e-3, 1).Log(),
		optimize.Int("size", 1, 4).When("kernel", "rbf", "poly"),
		optimize.Categorical("kernel", "linear", "rbf", "poly").When("model", "svm"),
		optimize.Categorical("model", "svm", "tree", "knn"),
		optimize.Double("gamma", 0, 1).When("kernel", "rbf"),
		optimize.Double("tail", 0, 1).When("size", "2", "3"),
		optimize.Int("depth", 1, 6).When("model", "tree"),
		optimize.Ordered("split", "low", "mid", "high").When("model", "tree", "knn"),
	)
}

func roughly(p optimize.Point) float64 {
	v := math.Log10(p.Float("rate"))
	for weight, name := range []string{"size", "depth"} {
		v += float64((weight+2)*p.Int(name)) * 0.2
	}
	for _, name := range []string{"gamma", "tail"} {
		if p.Active(name) {
			v += 3 * p.Float(name) * p.Float("rate")
		}
	}
	return v + map[string]float64{"": 0, "rbf": 1, "poly": -1, "linear": 0}[p.Text("kernel")]*float64(p.Int("size")) +
		map[string]float64{"low": 1, "high": -2}[p.Text("split")]*(1+float64(p.Int("depth")))
}

// TestMeasure compares marginals, which are computed from the leaves, with the
// mean of predictions at random points that have the values in question.
func TestMeasure(t *testing.T) {
	t.Parallel()
	space := nested(t)
	m := fit(t, searched(t, space, 400, 3, roughly))
	l := newLattice(space, 6)
	r := random.New(5, 0)
	const points = 30000
	type key struct{ i, a, j, b int }
	sums, counts := map[key]float64{}, map[key]float64{}
	u := make([]float64, space.Len())
	for range points {
		for i := range u { // of each cell the value that stands for it
			u[i] = middle(r.Below(len(l.dims[i].at)), len(l.dims[i].at))
		}
		p := space.Quantile(u)
		at := space.Unit(p)
		v := m.predict(at) - float64(m.mean(0)-Number(m.shift))/m.unit
		for i := range at {
			for j := range at {
				if !math.IsNaN(at[i] + at[j]) {
					k := key{i, int(u[i] * float64(len(l.dims[i].at))), j, int(u[j] * float64(len(l.dims[j].at)))}
					sums[k] += v
					counts[k]++
				}
			}
		}
	}
	check := func(what string, k key, got float64) {
		if n := counts[k]; n > 300 && math.Abs(got-sums[k]/n) > 3/math.Sqrt(n) {
			t.Errorf("%s of %s at %d and %s at %d is %v: want %v", what, space.Parameter(k.i).Name, k.a, space.Parameter(k.j).Name, k.b, got, sums[k]/n)
		}
	}
	for i, curve := range m.marginals(l) {
		exists := 0.0
		for cell, got := range curve {
			check("mean", key{i, cell, i, cell}, got)
			exists += counts[key{i, cell, i, cell}] / points
		}
		if math.Abs(exists-l.dims[i].chance) > 0.02 {
			t.Errorf("%s exists with a chance of %v: want %v", space.Parameter(i).Name, l.dims[i].chance, exists)
		}
	}
	for i := range space.Len() {
		for j := range i {
			p, ok := l.newPair(i, j)
			together := 0.0
			for k, n := range counts {
				if k.i == i && k.j == j {
					together += n / points
				}
			}
			if ok != (together > 0) || math.Abs(together-p.chance) > 0.02 {
				t.Errorf("%s and %s exist with a chance of %v: want %v", space.Parameter(i).Name, space.Parameter(j).Name, p.chance, together)
			}
			if !ok {
				continue
			}
			m.fill(l, []*pair{p})
			columns := len(l.dims[p.j].at)
			for k, got := range p.table {
				check("mean", key{p.i, k / columns, p.j, k % columns}, got)
			}
		}
	}
}

// TestPEDANOVA compares with closed forms.
func TestPEDANOVA(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason    string
		space     *optimize.Space
		direction optimize.Direction
		objective func(optimize.Point) float64
		want      map[string]float64
		tolerance float64
	}{
		"One": {
			"What alone decides has all of it.", cube(t, "a", "b"), optimize.Maximize,
			func(p optimize.Point) float64 { return p.Float("a") },
			map[string]float64{"a": 1, "b": 0}, 0.13,
		},
		"Category": {
			// One of five is the best; of those a tenth of all trials, half.
			// Its chance is ½, a variance of 0.04 beside 0.09.
			"Half of one category is the best tenth.", mustSpace(t, optimize.Categorical("a", "v", "w", "x", "y", "z"), optimize.Double("b", 0, 1)), optimize.Minimize,
			func(p optimize.Point) float64 { return map[string]float64{"x": -1}[p.Text("a")] + 0.5*p.Float("b") },
			map[string]float64{"a": 0.04 / 0.09}, 0.05,
		},
		"Equal": {
			"Where all are the best nothing has a share.", cube(t, "a", "b"), optimize.Minimize,
			func(optimize.Point) float64 { return 1 }, map[string]float64{"a": 0, "b": 0}, 0,
		},
		"Conditional": {
			// b decides alone, but in a quarter of all points; of these the
			// best are 0.4. The chance is 0.4 ± sqrt(0.24) there.
			"What rarely exists explains less.",
			mustSpace(t, optimize.Categorical("a", "w", "x", "y", "z"), optimize.Double("b", 0, 1).When("a", "x")), optimize.Minimize,
			func(p optimize.Point) float64 {
				if !p.Active("b") {
					return 1
				}
				return p.Float("b") - 1
			},
			map[string]float64{"a": 3. / 16 * 0.16 / 0.09, "b": 0.25 * 0.24 / 0.09}, 0.1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shares, err := PEDANOVA(searched(t, tc.space, 3000, 3, tc.objective, tc.direction), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range tc.want {
				if got := byName(shares)[name]; math.Abs(got-want) > tc.tolerance {
					t.Errorf("%s share of %s is %.3f: want %.3f ± %.3f", tc.reason, name, got, want, tc.tolerance)
				}
			}
			t.Log(shares)
		})
	}
}

func BenchmarkImportance(b *testing.B) {
	var parameters []optimize.Parameter
	for i := range 20 {
		parameters = append(parameters, optimize.Double(string(rune('a'+i)), 0, 1))
	}
	h := searched(b, mustSpace(b, parameters...), 10000, 1, ishigami)
	b.Run("fANOVA", func(b *testing.B) {
		for b.Loop() {
			fit(b, h).Importance()
		}
	})
	b.Run("Interactions", func(b *testing.B) {
		m := fit(b, h)
		for b.Loop() {
			m.Interactions()
		}
	})
	b.Run("PED-ANOVA", func(b *testing.B) {
		for b.Loop() {
			if _, err := PEDANOVA(h, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
