// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"diwan.dev/diwan/optimize"
)

// TestRun checks that each result is told once and observed, whatever comes of
// a trial, and that no more run at once than wanted.
func TestRun(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Int("n", 0, 999))
	study := optimize.NewStudy(space, optimize.Options{Sampler: optimize.NewRandom(0)})
	var running, most atomic.Int32
	objective := func(_ context.Context, trial optimize.Trial) ([]float64, error) {
		now := running.Add(1)
		defer running.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		switch n := trial.Point.Int("n"); n % 5 {
		case 0:
			return nil, errors.New("out of memory")
		case 1:
			return nil, fmt.Errorf("n is %d: %w", n, optimize.ErrCannotEvaluate)
		default:
			return []float64{float64(n)}, nil
		}
	}
	var last optimize.Progress
	calls := 0
	if err := study.Run(t.Context(), 100, 7, objective, func(p optimize.Progress) { last, calls = p, calls+1 }); err != nil {
		t.Fatal(err)
	}
	count := map[optimize.State]int{}
	for _, trial := range study.Trials() {
		count[trial.State]++
		if want := map[int]optimize.State{0: optimize.Failed, 1: optimize.Infeasible}[trial.Point.Int("n")%5]; want != 0 && trial.State != want {
			t.Errorf("%v is %v, want %v", trial.Point, trial.State, want)
		}
	}
	best, _ := study.Best()
	failed := count[optimize.Failed] + count[optimize.Infeasible]
	if failed+count[optimize.Complete] != 100 || calls != 100 || last.Ended != 100 || last.Failed != failed || last.Best.Index != best.Index {
		t.Errorf("states %v, %d calls, the last %v", count, calls, last)
	}
	if most.Load() > 7 {
		t.Errorf("%d at once, want at most 7", most.Load())
	}
}

// TestRunExhausted checks that a trial which is being evaluated when another
// worker finds the space exhausted comes to its own end.
func TestRunExhausted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		study := optimize.NewStudy(mustSpace(t, optimize.Int("n", 0, 1)), optimize.Options{})
		objective := func(ctx context.Context, trial optimize.Trial) ([]float64, error) {
			if trial.Index == 0 {
				time.Sleep(time.Second) // of the bubble: passes once the other worker has ended
			}
			return []float64{0}, ctx.Err()
		}
		if err := study.Run(t.Context(), 9, 2, objective, nil); err != nil {
			t.Error(err)
		}
		for _, trial := range study.Trials() {
			if !trial.Complete() {
				t.Errorf("trial %d is %v, want complete", trial.Index, trial.State)
			}
		}
	})
}

// TestShowProgress checks what is written where it is no terminal: a line for
// each better value and one at the end.
func TestShowProgress(t *testing.T) {
	t.Parallel()
	var written strings.Builder
	study := optimize.NewStudy(mustSpace(t, optimize.Int("n", 0, 9)), optimize.Options{Sampler: optimize.NewRandom(3)})
	better, best := 0, math.Inf(1)
	objective := optimize.Single(func(p optimize.Point) float64 {
		if n := p.Float("n"); n < best {
			better, best = better+1, n
		}
		return p.Float("n")
	})
	if err := study.Run(t.Context(), 10, 1, objective, optimize.ShowProgress(&written)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(written.String()), "\n")
	last := lines[len(lines)-1]
	if len(lines) < better || len(lines) > better+1 || !strings.Contains(last, "10 of 10 trials") || !strings.Contains(last, "best 0 at n=0") {
		t.Errorf("%d better values, written:\n%s", better, written.String())
	}
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	few := mustSpace(t, optimize.Int("n", 0, 9))
	study := optimize.NewStudy(few, optimize.Options{})
	if err := study.Run(t.Context(), 100, 3, optimize.Single(func(p optimize.Point) float64 { return p.Float("n") }), nil); err != nil {
		t.Errorf("exhausted: %v", err)
	}
	if len(study.Trials()) != 10 {
		t.Errorf("%d trials of 10 points", len(study.Trials()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	many := optimize.NewStudy(mustSpace(t, optimize.Double("x", 0, 1)), optimize.Options{})
	err := many.Run(ctx, 1000, 2, func(_ context.Context, trial optimize.Trial) ([]float64, error) {
		if trial.Index == 5 {
			cancel()
		}
		return []float64{0}, nil
	}, nil)
	if !errors.Is(err, context.Canceled) || len(many.Trials()) > 10 {
		t.Errorf("cancelled: %v, after %d trials", err, len(many.Trials()))
	}
	wrong := many.Run(t.Context(), 1, 1, func(context.Context, optimize.Trial) ([]float64, error) { return []float64{1, 2}, nil }, nil)
	if wrong == nil || !strings.Contains(wrong.Error(), "want one for each of 1 objectives") {
		t.Errorf("two values of one objective: %v", wrong)
	}
}

// Tunes a function, four trials at once, and shows how it goes.
func ExampleStudy_Run() {
	space, err := optimize.NewSpace(optimize.Double("x", -5, 5), optimize.Double("y", -5, 5))
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Seed: 1})
	objective := optimize.Single(func(p optimize.Point) float64 {
		return math.Pow(p.Float("x")-1, 2) + math.Pow(p.Float("y")+2, 2)
	})
	progress := func(p optimize.Progress) {
		if p.Ended == p.Total {
			fmt.Printf("%d trials, best below 1: %v\n", p.Ended, p.Best.Value() < 1)
		}
	}
	if err := study.Run(context.Background(), 100, 4, objective, progress); err != nil {
		panic(err)
	}
	// Output: 100 trials, best below 1: true
}
