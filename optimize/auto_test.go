// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"diwan.dev/diwan/optimize"
)

// TestAutoChoice checks which sampler suggests what.
func TestAutoChoice(t *testing.T) {
	t.Parallel()
	var many []optimize.Parameter
	for i := range 61 {
		many = append(many, optimize.Double(fmt.Sprint("x", i), 0, 1))
	}
	for name, tc := range map[string]struct {
		reason     string
		parameters []optimize.Parameter
		objectives int
		past       int
		want       string
	}{
		"Few":        {"Points spread evenly before there is anything to learn from.", many[:5], 1, 5, "bayesianoptimization"},
		"Several":    {"Up to three objectives have a hypervolume to model.", many[:5], 3, 20, "bayesianoptimization"},
		"Parameters": {"Among many parameters a model knows little.", many, 3, 20, "nsga2"},
		"Results":    {"A model of many results takes long.", many[:5], 2, 1000, "nsga2"},
		"Only":       {"A single number is no matter for CMA-ES.", many[:1], 1, 1000, "multivariate-tpe"},
		"Objectives": {"The hypervolume of many objectives takes long.", many[:5], 4, 20, "nsga2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := mustSpace(t, tc.parameters...)
			sampler, err := optimize.New("auto", nil, optimize.Problem{Space: space})
			if err != nil {
				t.Fatal(err)
			}
			h := optimize.NewHistory(space, make([]optimize.Direction, tc.objectives)...)
			for range tc.past {
				p, err := optimize.NewRandom(1).Sample(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				if err := h.Tell(h.Add(p), optimize.Values(make([]float64, tc.objectives)...)); err != nil {
					t.Fatal(err)
				}
			}
			p, err := sampler.Sample(t.Context(), h)
			if err != nil || p.Labels()["sampler"] != tc.want {
				t.Errorf("%s sampler is %q, %v: want %q", tc.reason, p.Labels()["sampler"], err, tc.want)
			}
		})
	}
}

// TestAutoTurns checks that the sampler whose suggestions succeed gets more of
// them, and that no other is given up.
func TestAutoTurns(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Double("y", 0, 1))
	sampler, err := optimize.New("auto", nil, optimize.Problem{Space: space, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := optimize.NewHistory(space)
	turns := map[string]int{}
	for i := range 200 {
		p, err := sampler.Sample(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		value := 0.0
		if p.Labels()["sampler"] == "multivariate-tpe" {
			value = -float64(i)
		}
		if err := h.Tell(h.Add(p), optimize.Values(value)); err != nil {
			t.Fatal(err)
		}
		turns[p.Labels()["sampler"]]++
	}
	if good := turns["multivariate-tpe"]; len(turns) != 3 || good < 120 || good > 195 {
		t.Errorf("turns are %v: want most for the one that succeeds, and some for the others", turns)
	}
}

// TestAutoSmallBudget checks that few trials are not all spent on looking
// around.
func TestAutoSmallBudget(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", -1, 2), optimize.Double("y", -1, 2))
	gaps := []float64{}
	for seed := range uint64(9) {
		study := optimize.NewStudy(space, optimize.Options{Seed: seed, Budget: optimize.Budget{MaxTrials: 15}})
		sphere := optimize.Single(func(p optimize.Point) float64 { return math.Hypot(p.Float("x"), p.Float("y")) })
		if err := study.Run(t.Context(), 15, 1, sphere, nil); err != nil {
			t.Fatal(err)
		}
		best, _ := study.Best()
		gaps = append(gaps, best.Value())
	}
	slices.Sort(gaps)
	if median := gaps[4]; median > 0.05 {
		t.Errorf("median distance from the optimum after 15 trials is %v, want less than 0.05", median)
	}
}

// Tunes a function whose parameters depend on each other, with nothing chosen.
func ExampleNewAuto() {
	space, err := optimize.NewSpace(
		optimize.Categorical("model", "linear", "forest"),
		optimize.Double("penalty", 1e-4, 1).Log().When("model", "linear"),
		optimize.Int("depth", 1, 20).When("model", "forest"),
	)
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Seed: 1, Budget: optimize.Budget{MaxTrials: 40, Parallel: 4}})
	loss := optimize.Single(func(p optimize.Point) float64 {
		if p.Text("model") == "linear" {
			return 0.3 + math.Abs(math.Log10(p.Float("penalty"))+2)/10
		}
		return 0.2 + math.Abs(float64(p.Int("depth")-7))/10
	})
	if err := study.Run(context.Background(), 40, 4, loss, nil); err != nil {
		panic(err)
	}
	best, _ := study.Best()
	fmt.Println(best.Point.Text("model"), best.Value() < 0.31)
	// Output: forest true
}
