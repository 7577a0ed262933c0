// SPDX-License-Identifier: Apache-2.0

// Package study runs one search: an optimizer is asked for points and told
// their values, one after another or with several pending.
//
// Our samplers run in this process and peers in Python processes of their own,
// but both are an [Optimiser], and see the same problem, seed, order of results
// and noise.
package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/result"
)

// Setup is what an optimizer is told of a search before it begins.
type Setup struct {
	Seed             uint64
	Trials, Parallel int
}

// Optimiser begins searches, one at a time.
type Optimiser interface {
	// Begin begins a search; the one before it is over.
	Begin(ctx context.Context, p *problem.Problem, s Setup) (Session, error)
	// Close frees what the optimizer holds.
	Close() error
}

// Session is one search.
type Session interface {
	// Ask returns the next point. [ErrExhausted] says that there is none.
	Ask(ctx context.Context) (problem.Point, error)
	// Tell tells the value of a point by its index, counted from 0 by asks.
	Tell(ctx context.Context, index int, value float64) error
}

// ErrExhausted says that every point of a finite space was suggested.
var ErrExhausted = errors.New("space is exhausted")

// Spender is a session that knows how much CPU time it has used. The time
// of others is taken by the clock.
type Spender interface{ Spent() time.Duration }

// patience is how many times the limit of a search a single answer may take by
// the clock, on a machine that has other things to do, before its process is
// ended.
const patience = 4

// Run runs a search. An optimizer that spends more than limit on asking and
// telling, or fails, ends it early, which the run says; the error is of the
// problem or the context alone.
func Run(ctx context.Context, o Optimiser, name string, p *problem.Problem, s Setup, limit time.Duration) (result.Run, error) {
	r := &runner{
		problem: p, setup: s, limit: limit,
		order: rand.New(rand.NewPCG(s.Seed, 1)),
		run:   result.Run{Key: result.Key{Problem: p.Name, Optimiser: name, Seed: s.Seed, Parallel: s.Parallel}, Trials: s.Trials},
		best:  math.Inf(1),
	}
	err := r.search(ctx, o)
	r.run.Seconds = math.Round(1e4*r.spent().Seconds()) / 1e4
	return r.run, err
}

type runner struct {
	problem *problem.Problem
	setup   Setup
	order   *rand.Rand // in which results come
	run     result.Run
	best    float64 // observed
	asked   int
	session Session
	clock   time.Duration // spent on asking and telling
	limit   time.Duration
	pending []trial
}

type trial struct {
	index int
	point problem.Point
}

func (r *runner) search(ctx context.Context, o Optimiser) (err error) {
	if r.session, err = o.Begin(ctx, r.problem, r.setup); err != nil {
		r.session = nil
		return r.end(ctx, fmt.Sprintf("cannot begin: %v", err))
	}
	for r.run.Told < r.setup.Trials {
		if err := r.fill(ctx); err != nil {
			return r.end(ctx, err.Error())
		}
		if len(r.pending) == 0 {
			return r.end(ctx, ErrExhausted.Error())
		}
		i := r.order.IntN(len(r.pending))
		t := r.pending[i]
		r.pending = slices.Delete(r.pending, i, i+1)
		value, err := r.problem.Evaluate(ctx, t.point, rand.New(rand.NewPCG(r.setup.Seed, 2+uint64(t.index))))
		if err != nil {
			return fmt.Errorf("cannot evaluate %s: %w", r.problem.Name, err)
		}
		if err := r.timed(ctx, func(ctx context.Context) error { return r.session.Tell(ctx, t.index, value.Observed) }); err != nil {
			return r.end(ctx, err.Error())
		}
		r.note(value)
		if r.spent() > r.limit && r.run.Told < r.setup.Trials {
			return r.end(ctx, fmt.Sprintf("spent its limit of %v", r.limit))
		}
	}
	return nil
}

// fill asks until as many points are pending as may be.
func (r *runner) fill(ctx context.Context) error {
	for len(r.pending) < r.setup.Parallel && r.asked < r.setup.Trials {
		var point problem.Point
		err := r.timed(ctx, func(ctx context.Context) (err error) {
			point, err = r.session.Ask(ctx)
			return err
		})
		if errors.Is(err, ErrExhausted) {
			return nil
		} else if err != nil {
			return err
		}
		if slices.ContainsFunc(r.pending, func(t trial) bool { return same(t.point.At, point.At) }) {
			r.run.Duplicates++
		}
		r.pending = append(r.pending, trial{r.asked, point})
		r.asked++
	}
	return nil
}

// timed counts what an operation takes.
func (r *runner) timed(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience*max(r.limit, time.Second))
	defer cancel()
	began := time.Now()
	err := f(ctx)
	r.clock += time.Since(began)
	return err
}

// spent is what the optimizer has used.
func (r *runner) spent() time.Duration {
	if s, ok := r.session.(Spender); ok {
		return s.Spent()
	}
	return r.clock
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
}

// note records a value that was told.
func (r *runner) note(v problem.Value) {
	r.run.Told++
	if v.Observed >= r.best && len(r.run.Steps) > 0 {
		return
	}
	r.best = v.Observed
	distance := v.Actual
	if !math.IsNaN(r.problem.Optimum) {
		distance = math.Max(v.Actual-r.problem.Optimum, 0)
	}
	r.run.Steps = append(r.run.Steps, result.Step{Trial: r.run.Told, Value: distance})
}

// end records why a search ended early, unless it was the caller who ended it.
func (r *runner) end(ctx context.Context, reason string) error {
	r.run.Ended = strings.TrimSpace(fmt.Sprintf("%.200s", strings.ReplaceAll(reason, "\n", " ")))
	return ctx.Err()
}
