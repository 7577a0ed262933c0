// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/optimizetest"
)

func TestGP(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultGPConfig()
			c.InitialPoints, c.Candidates = 3, 30
			return optimize.NewGP(space, seed, c)
		},
		Objectives: 4,
	})
}

func TestGPHedge(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{
		New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
			c := optimize.DefaultGPConfig()
			c.InitialPoints, c.Candidates, c.Climb, c.Acquisition = 3, 20, false, optimize.Hedge
			return optimize.NewGP(space, seed, c)
		},
	})
}

func TestForest(t *testing.T) {
	t.Parallel()
	for _, kind := range []optimize.ForestKind{optimize.RandomForest, optimize.ExtraTrees, optimize.GradientBoosting} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			optimizetest.Run(t, optimizetest.Subject{
				New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
					c := optimize.DefaultForestConfig()
					c.Kind, c.Trees, c.InitialPoints, c.Candidates = kind, 5, 3, 10
					return optimize.NewForest(space, seed, c)
				},
				Objectives: 2,
			})
		})
	}
}

// search returns the least value that a sampler finds of f within some trials,
// parallel of them pending at a time, and fails when two pending ones are the
// same.
func search(t *testing.T, sampler optimize.Sampler, space *optimize.Space, trials, parallel int, f func(optimize.Point) optimize.Result) float64 {
	t.Helper()
	h := optimize.NewHistory(space)
	for h.Len() < trials {
		from := h.Len()
		for range parallel {
			p, err := sampler.Sample(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			if h.Contains(p) {
				t.Errorf("suggestion %d is %v again", h.Len(), p)
			}
			h.Add(p)
		}
		for i := from; i < h.Len(); i++ {
			if err := h.Tell(i, f(h.Trial(i).Point)); err != nil {
				t.Fatal(err)
			}
		}
	}
	best, ok := h.Best()
	if !ok {
		return math.Inf(1)
	}
	return best.Value()
}

// TestGPMinimum checks that the minima of known functions are found.
func TestGPMinimum(t *testing.T) {
	t.Parallel()
	plane := []optimize.Parameter{optimize.Double("x", -5, 10), optimize.Double("y", 0, 15)}
	branin := func(p optimize.Point) optimize.Result {
		x, y := p.Float("x"), p.Float("y")
		a := y - 5.1/(4*math.Pi*math.Pi)*x*x + 5/math.Pi*x - 6
		return optimize.Values(a*a + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10)
	}
	mixed := []optimize.Parameter{
		optimize.Double("rate", 1e-6, 1).Log(), optimize.Int("units", 1, 200), optimize.Categorical("kind", "a", "b", "c"),
		optimize.Double("momentum", 0, 1).When("kind", "b"),
	}
	tests := map[string]struct {
		reason           string
		parameters       []optimize.Parameter
		f                func(optimize.Point) optimize.Result
		trials, parallel int
		want             float64
	}{
		"Branin":         {"To many digits.", plane, branin, 40, 1, 0.397887358 + 1e-4},
		"BraninParallel": {"With ten pending, too.", plane, branin, 100, 10, 0.397887358 + 1e-2},
		"Mixed": {"Parameters of all kinds, one of which is there for one kind alone.", mixed, func(p optimize.Point) optimize.Result {
			loss := math.Abs(math.Log10(p.Float("rate"))+3) + math.Abs(float64(p.Int("units"))-70)/50
			if p.Text("kind") != "b" {
				return optimize.Values(loss + 1)
			}
			return optimize.Values(loss + math.Abs(p.Float("momentum")-0.9))
		}, 80, 1, 0.2},
		"Failures": {"Where a part of the space fails, beside the minimum.", plane, func(p optimize.Point) optimize.Result {
			if p.Float("x") < 0 {
				return optimize.Result{State: optimize.Failed}
			}
			return optimize.Values(math.Hypot(p.Float("x")-0.5, p.Float("y")-5))
		}, 50, 1, 0.5},
		"Constrained": {"Where the minimum violates a constraint on outcomes.", plane, func(p optimize.Point) optimize.Result {
			r := optimize.Values(p.Float("x") + p.Float("y")) // least on the circle: 9 − 3·√2
			r.Violations = []float64{math.Hypot(p.Float("x")-2, p.Float("y")-7) - 3}
			return r
		}, 40, 1, 9 - 3*math.Sqrt2 + 0.1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := mustSpace(t, tc.parameters...)
			for seed := range uint64(2) {
				sampler, err := optimize.NewGP(space, seed, optimize.DefaultGPConfig())
				if err != nil {
					t.Fatal(err)
				}
				if got := search(t, sampler, space, tc.trials, tc.parallel, tc.f); got > tc.want {
					t.Errorf("%s seed %d: least value %v: want at most %v", tc.reason, seed, got, tc.want)
				}
			}
		})
	}
}

// TestGPFront checks that a search of two objectives finds their front: the
// hypervolume of (x² , (x−2)²), whatever the other parameter, within (4, 4).
func TestGPFront(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", -5, 5), optimize.Double("y", -5, 5))
	sampler, err := optimize.NewGP(space, 1, optimize.DefaultGPConfig())
	if err != nil {
		t.Fatal(err)
	}
	h := optimize.NewHistory(space, optimize.Minimize, optimize.Maximize)
	for i := range 40 {
		p, err := sampler.Sample(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		h.Add(p)
		x, y := p.Float("x"), p.Float("y")
		if err := h.Tell(i, optimize.Values(x*x+y*y, -(x-2)*(x-2)-y*y)); err != nil {
			t.Fatal(err)
		}
	}
	front := h.Pareto()
	slices.SortFunc(front, func(a, b optimize.Trial) int { return cmp.Compare(a.Values[0], b.Values[0]) })
	volume, ceiling := 0.0, 4.0
	for _, t := range front {
		if t.Values[0] < 4 && -t.Values[1] < ceiling {
			volume += (4 - t.Values[0]) * (ceiling + t.Values[1])
			ceiling = -t.Values[1]
		}
	}
	// Of the square of 16, the area under (2−√a)² from a = 0 to 4 is 8/3.
	if want := 16 - 8.0/3; volume < 0.93*want {
		t.Errorf("front of %d points has volume %v: want nearly %v", len(front), volume, want)
	}
}

// TestGPExtremes checks that searches end well that know nothing but extremes.
func TestGPExtremes(t *testing.T) {
	t.Parallel()
	var many []optimize.Parameter
	for i := range 300 {
		many = append(many, optimize.Double(fmt.Sprint("x", i), 0, 1))
	}
	line := []optimize.Parameter{optimize.Double("x", -1e308, 1e308)}
	for name, tc := range map[string]struct {
		parameters []optimize.Parameter
		f          func(i int) optimize.Result
	}{
		"Failed":   {line, func(int) optimize.Result { return optimize.Result{State: optimize.Failed} }},
		"Constant": {line, func(int) optimize.Result { return optimize.Values(1e308) }},
		"Infinite": {line, func(i int) optimize.Result { return optimize.Values(math.Inf(i%2*2 - 1)) }},
		"Huge":     {line, func(i int) optimize.Result { return optimize.Values(1e308 * float64(i%3-1)) }},
		"Violated": {line, func(i int) optimize.Result {
			return optimize.Result{State: optimize.Complete, Values: []float64{0}, Violations: []float64{math.Inf(1), -1e308}[:1+i%2]}
		}},
		"Many": {many, func(i int) optimize.Result { return optimize.Values(float64(i)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := mustSpace(t, tc.parameters...)
			sampler, err := optimize.NewGP(space, 1, optimize.DefaultGPConfig())
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			search(t, sampler, space, 16, 1, func(optimize.Point) optimize.Result { i++; return tc.f(i) })
		})
	}
}

func TestBayesianSettings(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1))
	for _, tc := range []struct{ name, value, want string }{
		{"base_estimator", "GP", ""}, {"base_estimator", "RF", ""}, {"base_estimator", "ET", ""}, {"base_estimator", "GBRT", ""},
		{"base_estimator", "SVM", `base_estimator is "SVM": want one of GP, RF, ET, GBRT`},
		{"n_initial_points", "0", ""}, {"n_initial_points", "-1", `n_initial_points is "-1": want an integer from 0`},
		{"acq_func", "gp_hedge", ""}, {"acq_func", "LCB", ""}, {"acq_func", "EI", ""}, {"acq_func", "PI", ""}, {"acq_func", "EIps", ""}, {"acq_func", "PIps", ""},
		{"acq_func", "UCB", `acq_func is "UCB"`},
		{"acq_optimizer", "auto", ""}, {"acq_optimizer", "sampling", ""}, {"acq_optimizer", "lbfgs", ""}, {"acq_optimizer", "adam", `acq_optimizer is "adam"`},
		{"random_state", "7", ""}, {"random_state", "x", `random_state is "x"`},
	} {
		sampler, err := optimize.New("bayesianoptimization", map[string]string{tc.name: tc.value}, optimize.Problem{Space: space})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s=%s: %v: want %q", tc.name, tc.value, err, tc.want)
		}
		if err == nil {
			search(t, sampler, space, 14, 2, func(p optimize.Point) optimize.Result { return optimize.Values(p.Float("x")) })
		}
	}
}

// Tunes a function of two numbers that takes long to compute.
func ExampleNewGP() {
	space, err := optimize.NewSpace(optimize.Double("x", -5, 5), optimize.Double("y", -5, 5))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewGP(space, 1, optimize.DefaultGPConfig())
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	for range 30 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		x, y := trial.Point.Float("x"), trial.Point.Float("y")
		if err := study.Tell(trial.Index, (x-1)*(x-1)+10*(y+2)*(y+2)); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Printf("x=%.2f y=%.2f\n", best.Point.Float("x"), best.Point.Float("y"))
	// Output: x=1.00 y=-2.00
}

// Tunes by a random forest in place of a Gaussian process.
func ExampleNewForest() {
	space, err := optimize.NewSpace(optimize.Categorical("optimizer", "sgd", "adam", "lion"), optimize.Int("layers", 1, 4))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewForest(space, 1, optimize.DefaultForestConfig())
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	for range 12 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		loss := math.Abs(float64(trial.Point.Int("layers") - 3))
		if trial.Point.Text("optimizer") != "adam" {
			loss++
		}
		if err := study.Tell(trial.Index, loss); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Println(best.Point)
	// Output: optimizer=adam layers=3
}
