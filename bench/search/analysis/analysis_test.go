// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/bench/search/result"
)

func TestRanks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason       string
		values, want []float64
	}{
		"Order": {"The least is first.", []float64{3, 1, 2}, []float64{3, 1, 2}},
		"Ties":  {"Equals share.", []float64{2, 1, 2, 2}, []float64{3, 1, 3, 3}},
		"All":   {"All may be equal.", []float64{5, 5}, []float64{1.5, 1.5}},
		"None":  {"Nobody has no rank.", nil, []float64{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Ranks(tc.values)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCompare holds the test to the published critical values of the
// signed-rank statistic, and the approximation to the exact test.
func TestCompare(t *testing.T) {
	t.Parallel()
	// Without ties n = 6 and a least sum of 0 has P = 2/64, and n = 10 with a
	// sum of 8 P = 0.0488 (the table's 5 % point).
	if got := Compare([]float64{-1, -2, -3, -4, -5, -6}); got.Wins != 6 || math.Abs(got.P-2.0/64) > 1e-12 {
		t.Errorf("six wins: %+v, want P 0.03125", got)
	}
	if got := Compare([]float64{-1, 2, -3, -4, -5, 6, -7, -8, -9, -10}); got.Losses != 2 || math.Abs(got.P-0.048828125) > 1e-12 {
		t.Errorf("a least sum of 8 in 10: %+v, want P 0.0488", got)
	}
	if got := Compare([]float64{0, 0}); got.P != 1 || got.Ties != 2 {
		t.Errorf("ties alone: %+v, want P 1", got)
	}
	var differences []float64
	for i := range 60 {
		differences = append(differences, float64(i+1)*math.Pow(-1, float64(i%3)))
	}
	exact := Compare(differences).P
	if approximate := Compare(append(differences, 1e-9)).P; math.Abs(exact-approximate) > 0.02 {
		t.Errorf("P %v exactly and %v approximately", exact, approximate)
	}
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	var values []float64
	for i := range 100 {
		values = append(values, float64(i%10))
	}
	// The mean is 4.5, its standard error 2.87/10.
	got := Bootstrap(values)
	if math.Abs(got.Mean-4.5) > 1e-12 || math.Abs(got.Low-(4.5-1.96*0.287)) > 0.06 || math.Abs(got.High-(4.5+1.96*0.287)) > 0.06 {
		t.Errorf("interval %+v, want 4.5 with 3.94 and 5.06", got)
	}
	if got := Geometric([]float64{1, 100}); math.Abs(got.Mean-10) > 1e-12 {
		t.Errorf("geometric mean of 1 and 100: %v", got.Mean)
	}
	if got := Bootstrap(nil); !math.IsNaN(got.Mean) {
		t.Errorf("mean of nothing: %v", got)
	}
}

// run makes a run that reaches a value at its tenth trial.
func run(problem, optimiser string, seed uint64, parallel int, value float64) result.Run {
	return result.Run{
		Key:    result.Key{Problem: problem, Optimiser: optimiser, Seed: seed, Parallel: parallel},
		Trials: 25, Told: 25, Steps: []result.Step{{Trial: 1, Value: 100}, {Trial: 10, Value: value}},
	}
}

func example() []result.Run {
	var runs []result.Run
	for seed := range uint64(3) {
		for _, parallel := range []int{1, 10} {
			more := float64(parallel) // worse when parallel
			runs = append(runs,
				run("bbob/f", "ours/random", seed, parallel, 10), run("bbob/f", "ours/a", seed, parallel, 1*more),
				run("bbob/f", "peer/a", seed, parallel, 2*more), run("model/m", "ours/random", seed, parallel, 12),
				run("model/m", "ours/a", seed, parallel, 7*more), run("model/m", "peer/a", seed, parallel, 7*more),
			)
		}
	}
	for seed := range uint64(3) { // peer/a did not run these
		runs = append(runs, run("bbob/g", "ours/random", seed, 1, 4), run("bbob/g", "ours/a", seed, 1, 1))
	}
	return append(runs,
		result.Run{Key: result.Key{Problem: "bbob/g", Optimiser: "peer/a", Parallel: 1}, Trials: 25, Ended: "cannot begin: no categories"},
	)
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	r := New(example())
	all := []string{"ours/a", "ours/random", "peer/a"}
	blocks := r.Blocks(Select{all, "bbob", 1, 25})
	if len(blocks) != 3 {
		t.Fatalf("%d blocks, want the three seeds of bbob/f", len(blocks))
	}
	if diff := cmp.Diff([]float64{0.1, 1, 0.2}, blocks[0].Gaps); diff != "" {
		t.Errorf("gaps -want, +got:\n%s", diff)
	}
	// Of models the best that was found counts as the optimum.
	models := r.Blocks(Select{all, "model", 1, 25})
	if diff := cmp.Diff([]float64{1e-3, 1, 1e-3}, models[0].Gaps); diff != "" {
		t.Errorf("gaps of models -want, +got:\n%s", diff)
	}
	if early := r.Blocks(Select{all, "bbob", 1, 5}); early[0].Gaps[0] != 1 {
		t.Errorf("gap after 5 trials is %v, want as random's", early[0].Gaps[0])
	}
	if late := r.Blocks(Select{all, "", 1, 50}); len(late) > 0 {
		t.Errorf("%d blocks at 50 trials, where runs had 25", len(late))
	}
	ranks := MeanRanks(append(blocks, models...))
	for i, want := range []float64{1.25, 3, 1.75} {
		if math.Abs(ranks[i].Mean-want) > 1e-12 {
			t.Errorf("mean rank of %s is %v, want %v", all[i], ranks[i].Mean, want)
		}
	}
	if gaps := MeanGaps(blocks); math.Abs(gaps[2].Mean-0.2) > 1e-12 {
		t.Errorf("mean gap %v, want 0.2", gaps[2].Mean)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	text := Report(example(), []Twin{{"ours/a", "peer/a"}})
	for _, want := range []string{
		"| ours/a | peer/a | 1 | bbob | 25 | 3–0–0 | 0.25 | 0.5 (0.5 to 0.5) |",
		"| ours/a | peer/a | 1 | model | 25 | 0–0–3 | 1 | 1 (1 to 1) |",
		"| peer/a | bbob | 1 | cannot begin: no categories | bbob/g seed 0, 0 of 25 trials |",
		"## What ten pending points cost",
		"## 2 of 3 optimisers, one after another",
		"## 3 of 3 optimisers, 10 pending",
		"The rank of ours/a minus that of ours/random, block by block, at 25 trials: -1 (-1 to -1).",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("report lacks %q", want)
		}
	}
	if again := Report(example(), []Twin{{"ours/a", "peer/a"}}); again != text {
		t.Error("two reports of the same runs differ")
	}
	chief := append(example(), run("bbob/f", "ours/auto", 0, 1, 0.1), run("bbob/f", "ours/auto", 1, 1, 0.1))
	text = Report(chief, nil)
	if !strings.Contains(text, "| ours/auto | 1 (1 to 1) |") || strings.Count(text, "## Each of ours") != 1 {
		t.Errorf("report with a chief:\n%s", text)
	}
	if empty := Report(nil, nil); strings.Contains(empty, "NaN") {
		t.Errorf("report of nothing:\n%s", empty)
	}
	if fmt.Sprint(New(nil).families()) != "[]" {
		t.Error("families of nothing")
	}
}
