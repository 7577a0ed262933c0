// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"math"
	"slices"
	"testing"

	"diwan.dev/diwan/optimize"
)

// learners are the samplers whose suggestions depend on results.
var learners = []string{"auto", "tpe", "multivariate-tpe", "bayesianoptimization", "cmaes", "nsga2", "regularized-evolution"}

// models are those of them that look everywhere.
var models = learners[:5]

// funnel has its least value, 0, at 0.7, 0.2, and no slope to trust: a quadratic
// model would find the bottom of a bowl whatever else it knew.
func funnel(p optimize.Point) float64 {
	a, b := math.Abs(p.Float("a")-0.7), math.Abs(p.Float("b")-0.2)
	return math.Sqrt(a) + math.Sqrt(b)
}

// bestOf returns the geometric mean, over seeds, of the best of some trials of
// a sampler, in a search that is prepared first.
func bestOf(t *testing.T, name string, space *optimize.Space, trials int, prepare func(h *optimize.History, seed uint64)) float64 {
	t.Helper()
	const seeds = 12
	mean := 0.0
	for seed := range uint64(seeds) {
		s, err := optimize.New(name, nil, optimize.Problem{Space: space, Seed: seed, Budget: optimize.Budget{MaxTrials: trials}})
		if err != nil {
			t.Fatal(err)
		}
		h := optimize.NewHistory(space)
		prepare(h, seed)
		best := math.Inf(1)
		for range trials {
			p, err := s.Sample(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			best = math.Min(best, funnel(p))
			if err := h.Tell(h.Add(p), optimize.Values(funnel(p))); err != nil {
				t.Fatal(err)
			}
		}
		mean += math.Log(math.Max(best, 1e-9)) / seeds
	}
	return math.Exp(mean)
}

// TestKnownResults checks that each sampler that learns does so from results
// that were known before the search.
func TestKnownResults(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("a", 0, 1), optimize.Double("b", 0, 1))
	nothing := func(*optimize.History, uint64) {}
	known := func(h *optimize.History, seed uint64) {
		for _, trial := range trialsOf(record(t, space, optimize.NewRandom(seed+50), 60, funnel)) {
			if err := h.AddKnown(trial.Point, trial.Result); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range learners {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with, without := bestOf(t, name, space, 8, known), bestOf(t, name, space, 8, nothing)
			if with > 0.95*without {
				t.Errorf("the best of 8 trials is %.2g with known results, and %.2g without: want less", with, without)
			}
			t.Logf("%.2g with, %.2g without", with, without)
		})
	}
}

// TestPrior checks that each sampler begins where the user believes the best to
// be, and is not kept there by a belief that is wrong.
func TestPrior(t *testing.T) {
	t.Parallel()
	believed := func(a, b float64) *optimize.Space {
		return mustSpace(t, optimize.Double("a", 0, 1).Around(a, 0.15), optimize.Double("b", 0, 1).Around(b, 0.15))
	}
	plain := mustSpace(t, optimize.Double("a", 0, 1), optimize.Double("b", 0, 1))
	nothing := func(*optimize.History, uint64) {}
	for _, name := range append([]string{"random", "sobol", "halton"}, learners...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right, without := bestOf(t, name, believed(0.65, 0.25), 10, nothing), bestOf(t, name, plain, 10, nothing)
			if right > 0.85*without {
				t.Errorf("the best of 10 trials is %.2g with a good belief, and %.2g without: want clearly less", right, without)
			}
			t.Logf("after 10: %.2g with a good belief, %.2g without", right, without)
			if !slices.Contains(models, name) {
				return // others draw from the belief forever, or go from where it begins in small steps
			}
			wrong, random := bestOf(t, name, believed(0.45, 0.5), 60, nothing), bestOf(t, "random", believed(0.45, 0.5), 60, nothing)
			if wrong > 0.8*random {
				t.Errorf("the best of 60 trials is %.2g with a wrong belief, and %.2g of random ones: want clearly less", wrong, random)
			}
			t.Logf("after 60: %.2g with a wrong belief, %.2g of random ones", wrong, random)
		})
	}
}
