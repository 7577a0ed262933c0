// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/optimizetest"
)

func TestTPE(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
		c := optimize.DefaultUnivariateTPEConfig()
		c.Startup = 3
		return optimize.NewTPE(space, seed, c)
	}, Objectives: 3})
}

func TestMultivariateTPE(t *testing.T) {
	t.Parallel()
	optimizetest.Run(t, optimizetest.Subject{New: func(space *optimize.Space, seed uint64) (optimize.Sampler, error) {
		c := optimize.DefaultTPEConfig()
		c.Startup = 3
		return optimize.NewTPE(space, seed, c)
	}, Objectives: 3})
}

// A model of all parameters follows a valley that is parallel to none.
func ExampleNewTPE() {
	space, err := optimize.NewSpace(optimize.Double("x", -5, 5), optimize.Double("y", -5, 5))
	if err != nil {
		panic(err)
	}
	sampler, err := optimize.NewTPE(space, 1, optimize.DefaultTPEConfig())
	if err != nil {
		panic(err)
	}
	study := optimize.NewStudy(space, optimize.Options{Sampler: sampler})
	for range 200 {
		trial, err := study.Ask(context.Background())
		if err != nil {
			panic(err)
		}
		x, y := trial.Point.Float("x"), trial.Point.Float("y")
		if err := study.Tell(trial.Index, math.Pow(x-y, 2)+math.Pow(x+y-3, 2)/10); err != nil {
			panic(err)
		}
	}
	best, _ := study.Best()
	fmt.Printf("x=%.1f y=%.1f\n", best.Point.Float("x"), best.Point.Float("y"))
	// Output: x=1.5 y=1.5
}

// Each of many pending suggestions is a point of its own.
func TestTPEPending(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Int("n", 1, 5), optimize.Categorical("c", "a", "b"))
	for _, c := range []optimize.TPEConfig{optimize.DefaultTPEConfig(), optimize.DefaultUnivariateTPEConfig()} {
		sampler, err := optimize.NewTPE(space, 1, c)
		if err != nil {
			t.Fatal(err)
		}
		h := optimize.NewHistory(space)
		for range 60 {
			for h.Len()-len(h.Told()) < 10 {
				p, err := sampler.Sample(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				if h.Contains(p) {
					t.Fatalf("%+v: suggested again: %v", c, p)
				}
				h.Add(p)
			}
			oldest := len(h.Told())
			if err := h.Tell(oldest, optimize.Values(math.Abs(h.Trial(oldest).Point.Float("x")-0.3))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Results that no arithmetic survives must not keep it from going on.
func TestTPEExtremes(t *testing.T) {
	t.Parallel()
	space := mustSpace(t, optimize.Double("x", 0, 1), optimize.Double("y", 1e-300, 1e300).Log())
	for name, value := range map[string]func(int) optimize.Result{
		"constant":   func(int) optimize.Result { return optimize.Values(3) },
		"infinite":   func(i int) optimize.Result { return optimize.Values(math.Inf(1 - i%2*2)) },
		"huge":       func(i int) optimize.Result { return optimize.Values(1e308 * float64(1-i%3)) },
		"failed":     func(int) optimize.Result { return optimize.Result{State: optimize.Failed} },
		"infeasible": func(int) optimize.Result { return optimize.Result{State: optimize.Infeasible} },
		"stopped":    func(i int) optimize.Result { return optimize.Result{State: optimize.Stopped, Step: i} },
		"violating": func(i int) optimize.Result {
			return optimize.Result{State: optimize.Complete, Values: []float64{1}, Violations: []float64{math.Inf(i%2*2 - 1)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []optimize.TPEConfig{optimize.DefaultTPEConfig(), optimize.DefaultUnivariateTPEConfig()} {
				sampler, err := optimize.NewTPE(space, 1, c)
				if err != nil {
					t.Fatal(err)
				}
				h := optimize.NewHistory(space)
				for i := range 60 {
					p, err := sampler.Sample(t.Context(), h)
					if err != nil {
						t.Fatal(err)
					}
					if err := h.Tell(h.Add(p), value(i)); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
