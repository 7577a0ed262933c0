// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"math"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/internal/pareto"
)

// zdt are the first three problems of E. Zitzler, K. Deb and L. Thiele,
// "Comparison of multiobjective evolutionary algorithms", 2000.
func zdt(problem int, p optimize.Point, n int) (f, g float64) {
	f = p.Float("x0")
	for i := 1; i < n; i++ {
		g += p.Float(fmt.Sprint("x", i))
	}
	g = 1 + 9*g/float64(n-1)
	switch part := f / g; problem {
	case 1:
		return f, g * (1 - math.Sqrt(part))
	case 2:
		return f, g * (1 - part*part)
	default:
		return f, g * (1 - math.Sqrt(part) - part*math.Sin(10*math.Pi*f))
	}
}

// hypervolume runs a search with two objectives, and returns the hypervolume of
// its results.
func hypervolume(t *testing.T, sampler optimize.Sampler, space *optimize.Space, trials, pending int, seed uint64, f func(optimize.Point) (a, b float64), ref ...float64) float64 {
	t.Helper()
	h := optimize.NewHistory(space, optimize.Minimize, optimize.Minimize)
	explore(t, h, sampler, trials, pending, seed, func(p optimize.Point) optimize.Result { return optimize.Values(f(p)) })
	var rows [][]float64
	for _, trial := range h.Pareto() {
		rows = append(rows, trial.Values)
	}
	return pareto.Hypervolume(rows, ref)
}

func unitCube(t *testing.T, n int) *optimize.Space {
	t.Helper()
	var parameters []optimize.Parameter
	for i := range n {
		parameters = append(parameters, optimize.Double(fmt.Sprint("x", i), 0, 1))
	}
	return mustSpace(t, parameters...)
}

// TestNSGA2Zitzler holds the sampler to the mean hypervolume that Optuna 5.0.0's
// NSGAIISampler reaches on the same problems over seeds 0 to 4, one after
// another and with ten pending.
func TestNSGA2Zitzler(t *testing.T) {
	t.Parallel()
	const n = 8
	for _, tc := range []struct {
		problem, trials int
		optuna          float64
	}{
		{1, 200, 4.462}, {1, 500, 5.409}, {2, 200, 3.444}, {2, 500, 4.574}, {3, 200, 4.738}, {3, 500, 5.538},
	} {
		for _, pending := range []int{1, 10} {
			if pending > 1 && tc.trials > 200 {
				continue
			}
			t.Run(fmt.Sprintf("%d/%d/%d", tc.problem, tc.trials, pending), func(t *testing.T) {
				t.Parallel()
				space, mean, random := unitCube(t, n), 0.0, 0.0
				for seed := range uint64(5) {
					sampler, err := optimize.NewNSGA2(space, seed, optimize.DefaultNSGA2Config())
					if err != nil {
						t.Fatal(err)
					}
					f := func(p optimize.Point) (a, b float64) { return zdt(tc.problem, p, n) }
					mean += hypervolume(t, sampler, space, tc.trials, pending, seed, f, 1.1, 6) / 5
					random += hypervolume(t, optimize.NewRandom(seed), space, tc.trials, pending, seed, f, 1.1, 6) / 5
				}
				t.Logf("hypervolume %.3f; random %.3f, Optuna %.3f", mean, random, tc.optuna)
				if mean <= random || mean < tc.optuna {
					t.Errorf("hypervolume is %.3f: want more than %.3f, of random search, and at least %.3f, of Optuna", mean, random, tc.optuna)
				}
			})
		}
	}
}

// TestNSGA2Constrained checks that violations count first: the front within the
// constraint is found, and not the one outside it.
func TestNSGA2Constrained(t *testing.T) {
	t.Parallel()
	space := unitCube(t, 4)
	sampler, err := optimize.NewNSGA2(space, 1, optimize.DefaultNSGA2Config())
	if err != nil {
		t.Fatal(err)
	}
	h := optimize.NewHistory(space, optimize.Minimize, optimize.Minimize)
	explore(t, h, sampler, 400, 4, 1, func(p optimize.Point) optimize.Result {
		r := optimize.Values(zdt(1, p, 4))
		r.Violations = []float64{0.4 - p.Float("x0")} // the left part of the front is excluded
		return r
	})
	front := h.Pareto()
	for _, trial := range front {
		if trial.Values[0] < 0.4 {
			t.Errorf("the front has %v, which violates the constraint", trial.Values)
		}
	}
	least := math.Inf(1)
	for _, trial := range front {
		least = math.Min(least, trial.Values[1]-(1-math.Sqrt(trial.Values[0])))
	}
	if len(front) < 8 || least > 0.1 {
		t.Errorf("the front has %d points, the best %.3f above the optimum: want at least 8, and 0.1 at most", len(front), least)
	}
}

// TestNSGA2Elite checks that what is dropped from the pool changes nothing: a
// sampler that has seen results one by one agrees with a new one.
func TestNSGA2Elite(t *testing.T) {
	t.Parallel()
	space := unitCube(t, 3)
	c := optimize.DefaultNSGA2Config()
	c.Population = 8
	old, err := optimize.NewNSGA2(space, 1, c)
	if err != nil {
		t.Fatal(err)
	}
	h := optimize.NewHistory(space, optimize.Minimize, optimize.Minimize)
	for trials := 10; trials <= 200; trials += 10 {
		explore(t, h, old, trials, 4, uint64(trials), func(p optimize.Point) optimize.Result { return optimize.Values(zdt(2, p, 3)) })
		fresh, err := optimize.NewNSGA2(space, 1, c)
		if err != nil {
			t.Fatal(err)
		}
		p, err := old.Sample(t.Context(), h)
		q, errFresh := fresh.Sample(t.Context(), h)
		if err != nil || errFresh != nil || p.String() != q.String() {
			t.Fatalf("after %d trials: suggestion is %v (%v), and of a new sampler %v (%v)", trials, p, err, q, errFresh)
		}
	}
}
