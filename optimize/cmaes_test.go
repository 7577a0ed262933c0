// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
)

func cube(t *testing.T, n int, more ...optimize.Parameter) *optimize.Space {
	t.Helper()
	var parameters []optimize.Parameter
	for i := range n {
		parameters = append(parameters, optimize.Double(fmt.Sprint("x", i), -5, 5))
	}
	return mustSpace(t, append(parameters, more...)...)
}

// valley is Rosenbrock's function, with its minimum of 0 at 1.
func valley(p optimize.Point, n int) (loss float64) {
	for i := range n - 1 {
		a, b := p.Float(fmt.Sprint("x", i)), p.Float(fmt.Sprint("x", i+1))
		loss += 100*(b-a*a)*(b-a*a) + (1-a)*(1-a)
	}
	return loss
}

func mustCMAES(t *testing.T, space *optimize.Space, seed uint64, change func(*optimize.CMAESConfig)) optimize.Sampler {
	t.Helper()
	c := optimize.DefaultCMAESConfig()
	if change != nil {
		change(&c)
	}
	s, err := optimize.NewCMAES(space, seed, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// explore asks a sampler for points of a history until it has so many, with some
// of them pending, and has random ones of these end.
func explore(t *testing.T, h *optimize.History, s optimize.Sampler, trials, pending int, seed uint64, result func(optimize.Point) optimize.Result) {
	t.Helper()
	numbers := rand.New(rand.NewPCG(seed, 0))
	var open []int
	for h.Len() < trials || len(open) > 0 {
		for len(open) < pending && h.Len() < trials {
			p, err := s.Sample(t.Context(), h)
			if err != nil {
				t.Fatalf("suggestion %d: %v", h.Len(), err)
			}
			if h.Contains(p) {
				t.Fatalf("suggestion %d is one that there was: %v", h.Len(), p)
			}
			open = append(open, h.Add(p))
		}
		k := numbers.IntN(len(open))
		if err := h.Tell(open[k], result(h.Trial(open[k]).Point)); err != nil {
			t.Fatal(err)
		}
		open = slices.Delete(open, k, k+1)
	}
}

// TestCMAESConverges holds searches to the optimum of a curved valley, of which
// random search comes no nearer than 30 or so: one after another and with ten pending,
// with the surrogate and without it, and with a part of the trials failing.
func TestCMAESConverges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pending   int
		surrogate bool
		fails     bool
		most      float64
	}{
		"Surrogate":         {1, true, false, 1e-6},
		"Plain":             {1, false, false, 1e-2},
		"SurrogateParallel": {10, true, false, 2},
		"PlainParallel":     {10, false, false, 2},
		"Failing":           {1, true, true, 1e-2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var best []float64
			for seed := range uint64(5) {
				space := cube(t, 3)
				s := mustCMAES(t, space, seed, func(c *optimize.CMAESConfig) { c.Surrogate = tc.surrogate })
				h := optimize.NewHistory(space)
				explore(t, h, s, 600, tc.pending, seed, func(p optimize.Point) optimize.Result {
					if tc.fails && math.Mod(math.Abs(p.Float("x0"))*1e3, 1) < 0.2 {
						return optimize.Result{State: optimize.Failed}
					}
					return optimize.Values(valley(p, 3))
				})
				b, _ := h.Best()
				best = append(best, b.Value())
			}
			slices.Sort(best)
			if best[2] > tc.most {
				t.Errorf("best losses are %.2g: want a median of at most %v", best, tc.most)
			}
		})
	}
}

// TestCMAESRebuilt checks over many generations what the conformance suite
// does over a few trials: that a sampler which has seen results come in any
// order agrees with a new one after a restart, which sees them in the order of
// the suggestions.
func TestCMAESRebuilt(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		space := cube(t, 3, optimize.Int("n", 1, 9), optimize.Categorical("c", "a", "b"))
		change := func(c *optimize.CMAESConfig) { c.Surrogate = seed%2 == 0 }
		old, h := mustCMAES(t, space, seed, change), optimize.NewHistory(space)
		for trials := 15; trials <= 180; trials += 15 {
			explore(t, h, old, trials, 10, seed, func(p optimize.Point) optimize.Result {
				return optimize.Values(valley(p, 3) + float64(p.Int("n")))
			})
			again := optimize.NewHistory(space)
			for i := range h.Len() {
				again.Add(h.Trial(i).Point)
				if err := again.Tell(i, h.Trial(i).Result); err != nil {
					t.Fatal(err)
				}
			}
			p, err := old.Sample(t.Context(), h)
			q, errAgain := mustCMAES(t, space, seed, change).Sample(t.Context(), again)
			if err != nil || errAgain != nil || p.String() != q.String() {
				t.Fatalf("suggestion %d is %v (%v), and after a restart %v (%v)", trials, p, err, q, errAgain)
			}
		}
	}
}

// TestCMAESLate checks that a result which comes a thousand trials late counts
// as if it had come in time.
func TestCMAESLate(t *testing.T) {
	t.Parallel()
	space := cube(t, 2)
	s, h := mustCMAES(t, space, 1, nil), optimize.NewHistory(space)
	first, err := s.Sample(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	h.Add(first)
	explore(t, h, s, 1000, 1, 1, func(p optimize.Point) optimize.Result { return optimize.Values(valley(p, 2)) })
	if err := h.Tell(0, optimize.Values(valley(first, 2))); err != nil {
		t.Fatal(err)
	}
	p, err := s.Sample(t.Context(), h)
	q, errAgain := mustCMAES(t, space, 1, nil).Sample(t.Context(), h)
	if err != nil || errAgain != nil || p.String() != q.String() {
		t.Errorf("suggestion is %v (%v), and of a new sampler %v (%v)", p, err, q, errAgain)
	}
}

// TestCMAESMixed checks that categories, conditional and whole parameters are
// searched too: the best combination of few is found, and numbers with it.
func TestCMAESMixed(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(10) {
		space := cube(t, 2, optimize.Int("n", 1, 30), optimize.Categorical("c", "a", "b", "c", "d", "e"),
			optimize.Double("y", 0, 1).When("c", "d"))
		s, h := mustCMAES(t, space, seed, nil), optimize.NewHistory(space)
		explore(t, h, s, 200, 1, seed, func(p optimize.Point) optimize.Result {
			loss := math.Hypot(p.Float("x0")-2, p.Float("x1")+3) + math.Abs(float64(p.Int("n")-22))/5 + 3
			if p.Text("c") == "d" {
				loss -= 3 - math.Abs(p.Float("y")-0.8)
			}
			return optimize.Values(loss)
		})
		if best, _ := h.Best(); best.Value() < 0.3 {
			found++
		}
	}
	if found < 8 {
		t.Errorf("%d of 10 searches come near the optimum: want at least 8", found)
	}
}

// TestCMAESKnown checks that known results of a similar search help: half the
// trials are enough for what a search without them finds.
func TestCMAESKnown(t *testing.T) {
	t.Parallel()
	better := 0
	for seed := range uint64(10) {
		space := cube(t, 6)
		ellipse := func(p optimize.Point, shift float64) optimize.Result {
			loss := 0.0
			for i := range 6 {
				x := p.Float(fmt.Sprint("x", i)) - 3 - shift
				loss += x * x * math.Pow(10, float64(i)/2)
			}
			return optimize.Values(loss)
		}
		plain := func(c *optimize.CMAESConfig) { c.Surrogate = false }
		cold, warm := optimize.NewHistory(space), optimize.NewHistory(space)
		explore(t, cold, mustCMAES(t, space, seed, plain), 80, 1, seed, func(p optimize.Point) optimize.Result { return ellipse(p, 0) })
		for i := range cold.Len() {
			if err := warm.AddKnown(cold.Trial(i).Point, ellipse(cold.Trial(i).Point, 0.2)); err != nil {
				t.Fatal(err)
			}
		}
		explore(t, warm, mustCMAES(t, space, seed, plain), 40, 1, seed, func(p optimize.Point) optimize.Result { return ellipse(p, 0) })
		a, _ := cold.Best()
		b, _ := warm.Best()
		if b.Value() < a.Value() {
			better++
		}
	}
	if better < 8 {
		t.Errorf("%d of 10 searches are better with known results: want at least 8", better)
	}
}

// TestCMAESHard checks that nothing breaks on what is hard: the suite of
// samplers has the extremes of values.
func TestCMAESHard(t *testing.T) {
	t.Parallel()
	failed := func(optimize.Point) optimize.Result { return optimize.Result{State: optimize.Failed} }
	constant := func(optimize.Point) optimize.Result { return optimize.Values(1) }
	for name, tc := range map[string]struct {
		space  *optimize.Space
		trials int
		result func(optimize.Point) optimize.Result
	}{
		"AllFailed":  {cube(t, 3), 300, failed},
		"Constant":   {cube(t, 3), 1500, constant},
		"OneNumber":  {cube(t, 1), 300, func(p optimize.Point) optimize.Result { return optimize.Values(math.Abs(p.Float("x0"))) }},
		"NoNumber":   {mustSpace(t, optimize.Categorical("c", "a", "b", "c"), optimize.Categorical("d", "a", "b", "c")), 9, constant},
		"Single":     {mustSpace(t, optimize.Double("x", 1, 1), optimize.Double("y", 0, 1)), 100, constant},
		"Thousand":   {cube(t, 1000), 60, func(p optimize.Point) optimize.Result { return optimize.Values(p.Float("x0")) }},
		"Infeasible": {cube(t, 3), 200, func(optimize.Point) optimize.Result { return optimize.Result{State: optimize.Infeasible} }},
		"Cliff": {cube(t, 2), 500, func(p optimize.Point) optimize.Result {
			return optimize.Values(math.Copysign(math.MaxFloat64, p.Float("x0")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := optimize.NewHistory(tc.space)
			explore(t, h, mustCMAES(t, tc.space, 1, nil), tc.trials, 3, 1, tc.result)
		})
	}
}

// TestCMAESViolations checks that the search gets to where constraints hold.
func TestCMAESViolations(t *testing.T) {
	t.Parallel()
	space := cube(t, 4)
	h := optimize.NewHistory(space)
	explore(t, h, mustCMAES(t, space, 1, nil), 300, 1, 1, func(p optimize.Point) optimize.Result {
		sum, outside := 0.0, 0.0
		for i := range 4 {
			x := p.Float(fmt.Sprint("x", i))
			sum += x
			outside = math.Max(outside, math.Abs(x-4)-0.5)
		}
		r := optimize.Values(sum)
		r.Violations = []float64{outside}
		return r
	})
	if best, ok := h.Best(); !ok || best.Value() > 14.5 {
		t.Errorf("best feasible loss is %v (%v): want close to 14", best.Value(), ok)
	}
}

func TestCMAESSettings(t *testing.T) {
	t.Parallel()
	space := cube(t, 2)
	for name, tc := range map[string]struct {
		reason   string
		space    *optimize.Space
		settings map[string]string
		want     string // part of the error, "" for none
	}{
		"Katib":     {"Katib's settings are known.", space, map[string]string{"random_state": "1", "sigma": "0.3", "restart_strategy": "bipop"}, ""},
		"Ours":      {"So are ours.", space, map[string]string{"popsize": "9", "separable": "true", "with_margin": "false", "surrogate": "false"}, ""},
		"Sigma":     {"A step of 0 is the default, as in Katib.", space, map[string]string{"sigma": "0"}, ""},
		"Negative":  {"But none is negative.", space, map[string]string{"sigma": "-10"}, `setting sigma is "-10": want a number from 0`},
		"Large":     {"One may be larger than the range, as in Katib's own test.", space, map[string]string{"sigma": "2"}, ""},
		"None":      {"None may begin with a capital, as in Katib.", space, map[string]string{"restart_strategy": "None"}, ""},
		"Restart":   {"Strategies are known.", space, map[string]string{"restart_strategy": "now"}, `restart_strategy is "now": want one of none, ipop, bipop`},
		"OneNumber": {"One number is enough.", cube(t, 1, optimize.Categorical("c", "a", "b")), nil, ""},
		"Ordered":   {"So is one with an order.", mustSpace(t, optimize.Ordered("size", "small", "medium", "large")), nil, ""},
		"Discrete":  {"Or one of a list of numbers.", mustSpace(t, optimize.Discrete("batch", 16, 32)), nil, ""},
		"Texts":     {"But not categories alone.", mustSpace(t, optimize.Categorical("c", "a", "b")), nil, "only categorical parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := optimize.New("cmaes", tc.settings, optimize.Problem{Space: tc.space})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s New: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestCMAESObjectives checks that several objectives are rejected.
func TestCMAESObjectives(t *testing.T) {
	t.Parallel()
	space := cube(t, 2)
	if _, err := mustCMAES(t, space, 1, nil).Sample(t.Context(), optimize.NewHistory(space, optimize.Minimize, optimize.Maximize)); err == nil {
		t.Error("no error for a search with two objectives")
	}
}

// TestCMAESSmallSpaces searches a line and an order, which Katib's refuses, and
// a plane with steps that are longer than it.
func TestCMAESSmallSpaces(t *testing.T) {
	t.Parallel()
	levels := make([]string, 40)
	for i := range levels {
		levels[i] = fmt.Sprint("level", i)
	}
	for name, tc := range map[string]struct {
		space    *optimize.Space
		settings map[string]string
		loss     func(optimize.Point) float64
		most     float64
	}{
		"Line": {cube(t, 1), nil, func(p optimize.Point) float64 { return math.Pow(p.Float("x0")-3, 2) }, 1e-4},
		"Ordered": {mustSpace(t, optimize.Ordered("level", levels...)), nil, func(p optimize.Point) float64 {
			return math.Abs(float64(slices.Index(levels, p.Text("level")) - 31))
		}, 0},
		"Wide": {cube(t, 2), map[string]string{"sigma": "2"}, func(p optimize.Point) float64 {
			return math.Pow(p.Float("x0")-3, 2) + math.Pow(p.Float("x1")+1, 2)
		}, 1e-2},
		"Endless": {cube(t, 2), map[string]string{"sigma": "1e300"}, func(p optimize.Point) float64 {
			return math.Pow(p.Float("x0")-3, 2) + math.Pow(p.Float("x1")+1, 2)
		}, 1e-2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := optimize.New("cmaes", tc.settings, optimize.Problem{Space: tc.space, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			h := optimize.NewHistory(tc.space)
			trials := 100
			if size, finite := tc.space.Size(); finite {
				trials = int(size) * 3 / 4
			}
			explore(t, h, s, trials, 1, 1, func(p optimize.Point) optimize.Result { return optimize.Values(tc.loss(p)) })
			if best, _ := h.Best(); best.Value() > tc.most {
				t.Errorf("best of %d trials is %v, a loss of %.3g: want at most %v", trials, best.Point, best.Value(), tc.most)
			}
		})
	}
}
