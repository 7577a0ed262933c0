// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
)

// Plan says what to measure.
type Plan struct {
	Families []Family
	Searches []Search
	// Trials is how many trials random search trains to the end, Seeds how
	// many times each search runs, and Jobs how many run at once.
	Trials, Seeds, Jobs int
}

// Outcome is what came of one search.
type Outcome struct {
	Search string `json:"search"`
	Family string `json:"family"`
	Seed   uint64 `json:"seed"`
	// Target is what random search has at its end.
	Target float64 `json:"target"`
	// Part and Again are the parts of random search's epochs after which the
	// incumbent reached the target: with trials that go on where those of the
	// rung below ended, and with trials that start over. Both are 1 where it was
	// not Reached with as many epochs.
	Part    float64 `json:"part"`
	Again   float64 `json:"again"`
	Reached bool    `json:"reached"`
	// Error says why the search ended early.
	Error string `json:"error,omitempty"`
}

// Measure runs random search to find the target of each family, and then each
// search until it reaches the target.
func Measure(ctx context.Context, p Plan) ([]Outcome, error) {
	budget := p.Trials * Epochs
	ends := make([]float64, len(p.Families)*p.Seeds)
	err := parallel(ctx, p.Jobs, len(ends), func(i int) error {
		moments, err := Run(ctx, Random(), p.Families[i/p.Seeds], uint64(i%p.Seeds), budget, math.Inf(-1))
		if err == nil {
			ends[i] = moments[len(moments)-1].Actual
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	targets := make([]float64, len(p.Families))
	for f := range targets {
		of := slices.Sorted(slices.Values(ends[f*p.Seeds : (f+1)*p.Seeds]))
		targets[f] = (of[(p.Seeds-1)/2] + of[p.Seeds/2]) / 2
	}
	outcomes := make([]Outcome, len(p.Families)*len(p.Searches)*p.Seeds)
	return outcomes, parallel(ctx, p.Jobs, len(outcomes), func(i int) error {
		f, s := i/p.Seeds/len(p.Searches), i/p.Seeds%len(p.Searches)
		// Others than those that the targets come from.
		seed := uint64(p.Seeds + i%p.Seeds)
		moments, err := Run(ctx, p.Searches[s], p.Families[f], seed, budget, targets[f])
		outcomes[i] = outcome(p.Searches[s].Name, p.Families[f].Name, seed, budget, targets[f], moments)
		if err != nil {
			outcomes[i].Error = err.Error()
		}
		return ctx.Err()
	})
}

func outcome(search, family string, seed uint64, budget int, target float64, moments []Moment) Outcome {
	o := Outcome{Search: search, Family: family, Seed: seed, Target: target, Part: 1, Again: 1}
	if n := len(moments); n > 0 && moments[n-1].Actual <= target {
		o.Reached = true
		o.Part = math.Min(float64(moments[n-1].Epochs)/float64(budget), 1)
		o.Again = math.Min(float64(moments[n-1].Again)/float64(budget), 1)
	}
	return o
}

// parallel calls a function with the numbers below n, so many at once.
func parallel(ctx context.Context, jobs, n int, work func(i int) error) error {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	failures := make([]error, max(jobs, 1))
	var workers sync.WaitGroup
	for k := range failures {
		workers.Go(func() {
			for i := range next {
				if failures[k] = errors.Join(work(i), ctx.Err()); failures[k] != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(failures...)
}
