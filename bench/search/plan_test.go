// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/result"
)

func noModels(context.Context, string, int, map[string]string) (float64, error) {
	return 0, errors.New("no models here")
}

// TestSample checks that a smaller sample is a part of a greater one, and that
// each family has its share.
func TestSample(t *testing.T) {
	t.Parallel()
	c := campaign{families: []string{"bbob", "mixed", "noisy", "model"}, dims: []int{2, 5}, first: 1, n: 2}
	names := func(sample int) (names []string) {
		c.sample = sample
		for _, p := range c.problems(noModels) {
			names = append(names, p.Name)
		}
		return names
	}
	small, large := names(8), names(20)
	if diff := strings.Join(large[:8], " "); diff != strings.Join(small, " ") {
		t.Errorf("sample of 8: %v\nis no part of that of 20: %v", small, large)
	}
	for _, family := range c.families {
		n := 0
		for _, name := range small {
			if strings.HasPrefix(name, family+"/") {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d of 8 problems are of family %s, want 2", n, family)
		}
	}
	if all := names(0); len(all) != 2*(2*problem.BBOBFunctions+8+2*15+8) {
		t.Errorf("%d problems without a sample", len(all))
	}
}

// TestPlan checks that each search is run once, as long as any campaign wants
// it, and that the searches of an optimizer stand together.
func TestPlan(t *testing.T) {
	t.Parallel()
	short := campaign{families: []string{"mixed"}, first: 1, n: 1, optimisers: []string{"ours/random", "skopt/gp"}, seeds: 2, parallel: []int{1}, trials: 50, limit: time.Minute}
	long := short
	long.optimisers, long.trials, long.parallel = []string{"ours/random"}, 100, []int{1, 10}
	tasks := plan([]campaign{short, long}, nil)
	if want := 8*2*2 + 8*2; len(tasks) != want {
		t.Errorf("%d searches, want %d", len(tasks), want)
	}
	var order []string
	for _, task := range tasks {
		order = append(order, task.optimiser)
		if want := map[string]int{"ours/random": 100, "skopt/gp": 50}[task.optimiser]; task.trials != want {
			t.Errorf("%+v has %d trials, want %d", task.key(), task.trials, want)
		}
	}
	if order = slices.Compact(order); !slices.Equal(order, []string{"skopt/gp", "ours/random"}) {
		t.Errorf("optimisers in the order %v, want the slower first and each once", order)
	}
}

// TestScales checks that every scale compares every optimizer that it should.
func TestScales(t *testing.T) {
	t.Parallel()
	for _, scale := range []string{"smoke", "quick", "standard", "full"} {
		campaigns, err := scaled(scale, 1)
		if err != nil {
			t.Fatal(err)
		}
		run := map[string]bool{}
		for _, c := range campaigns {
			for _, name := range c.optimisers {
				run[name] = true
			}
		}
		for _, p := range programs {
			if !run[p.name] && (scale != "smoke" || p.pace == cheap) {
				t.Errorf("scale %s does not run %s", scale, p.name)
			}
		}
		for _, twin := range twins {
			if !run[twin.Ours] && slices.Contains(ourNames(), twin.Ours) {
				t.Errorf("scale %s does not run %s", scale, twin.Ours)
			}
		}
		for _, c := range only(campaigns, []string{"optuna/tpe"}) {
			if slices.ContainsFunc(c.optimisers, func(name string) bool { return name != "optuna/tpe" }) {
				t.Errorf("scale %s for optuna/tpe alone runs %v", scale, c.optimisers)
			}
		}
	}
	if _, err := scaled("huge", 1); err == nil {
		t.Error("there is a scale huge")
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	got, err := chosen("optuna/tpe, ours/tpe:gamma=0.3;prior_weight=2,optuna/tpe")
	if err != nil || !slices.Equal(got, []string{"optuna/tpe", "ours/tpe:gamma=0.3;prior_weight=2"}) {
		t.Errorf("chosen: %v, %v", got, err)
	}
	if _, err := chosen("nobody/knows"); err == nil || !strings.Contains(err.Error(), "optuna/tpe") {
		t.Errorf("chosen of an unknown optimiser: %v, want the known ones", err)
	}
	if _, err := ourOptimiser("ours/tpe:gamma"); err == nil {
		t.Error("a setting without a value is read")
	}
}

// TestCatalog checks that every peer has its files and every twin is known.
func TestCatalog(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		for _, path := range []string{strings.Fields(p.script)[0], "requirements/" + p.requirements + ".txt"} {
			if found, err := filepath.Glob(filepath.Join("peers", path)); err != nil || len(found) != 1 {
				t.Errorf("%s: no file %s", p.name, path)
			}
		}
	}
	for _, twin := range twins {
		if _, err := find(twin.Peer); err != nil {
			t.Error(err)
		}
	}
}

// TestExecute runs a small comparison with an optimizer that cannot be had,
// then again from its file.
func TestExecute(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	c := campaign{families: []string{"bbob"}, dims: []int{2}, first: 1, n: 1, sample: 2, optimisers: []string{"ours/random", "ours/sobol", "optuna/tpe"}, seeds: 1, parallel: []int{1, 10}, trials: 25}
	w := newWorkshop("peers", t.TempDir())
	w.broken["optuna"] = errors.New("no network")
	for again := range 2 {
		store, err := result.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if had := len(store.Runs()); had != again*12 {
			t.Errorf("file has %d runs before run %d", had, again)
		}
		e := &executor{workshop: w, store: store, jobs: 2, limit: time.Minute}
		if err := e.run(t.Context(), plan([]campaign{c}, nil)); err != nil {
			t.Fatal(err)
		}
		for _, r := range store.Runs() {
			if missing := r.Optimiser == "optuna/tpe"; missing != strings.Contains(r.Ended, "no network") || !missing && r.Told != 25 {
				t.Errorf("run %+v", r)
			}
		}
		if again == 1 && e.total != 0 {
			t.Errorf("%d searches are run again", e.total)
		}
	}
}
