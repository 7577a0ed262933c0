// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/bench/search/result"
)

func TestStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "runs.jsonl")
	store, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Run{
		Key: result.Key{Problem: "bbob/f01", Optimiser: "ours/tpe", Seed: 1, Parallel: 10}, Trials: 50, Told: 30,
		Steps: []result.Step{{1, 12.5}, {7, 1e-9}}, Duplicates: 2, Seconds: 0.25, Ended: "spent",
	}
	for _, told := range []int{20, 30} { // the second replaces the first
		r.Told = told
		if err := store.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	again, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]result.Run{r}, again.Runs()); diff != "" {
		t.Errorf("read back -want, +got:\n%s", diff)
	}
	if !again.Has(r.Key, 50) || again.Has(r.Key, 100) || again.Has(result.Key{}, 1) {
		t.Error("Has: want the run for up to 50 trials alone")
	}
	if err := os.WriteFile(path, []byte("{\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Open(path); err == nil {
		t.Error("a broken file is read without an error")
	}
}

func TestBest(t *testing.T) {
	t.Parallel()
	r := result.Run{Steps: []result.Step{{2, 5}, {4, 7}, {9, 1}}} // under noise the best observed may be worse
	for trials, want := range map[int]float64{1: math.Inf(1), 2: 5, 3: 5, 4: 7, 9: 1, 100: 1} {
		if got := r.Best(trials); got != want {
			t.Errorf("best after %d trials is %v, want %v", trials, got, want)
		}
	}
}
