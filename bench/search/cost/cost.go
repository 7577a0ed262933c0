// SPDX-License-Identifier: Apache-2.0

// Package cost measures the CPU time of a suggestion after so many
// trials, and what a trial takes of memory.
//
// A history of random points with random values is given to an optimizer at
// once. Then it is asked and told some more, and what that takes is averaged;
// the first suggestion, which may have to read the whole history, is told apart:
// it is what a restart costs. Optimizers that only know points of their own
// making, as CMA-ES, make the history by asking and telling.
package cost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"time"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/study"
	"diwan.dev/diwan/optimize"
)

// Cell is a place in the table.
type Cell struct {
	Past       int `json:"past"` // trials in the history
	Parameters int `json:"parameters"`
}

// Figure is what was measured.
type Figure struct {
	Optimiser string `json:"optimiser"`
	Cell
	First time.Duration `json:"first_ns"` // processor time of the first suggestion
	Each  time.Duration `json:"each_ns"`  // and of each that follows, with telling it
	Asks  int           `json:"asks"`     // how many followed
	// Bytes are those that a trial of the history takes, 0 where not known.
	Bytes float64 `json:"bytes"`
	// Over says why there are no figures, or that First and Each are but a
	// lower bound.
	Over string `json:"over,omitempty"`
}

// Problem returns a space of so many numbers: three fifths plain, a fifth with
// logarithms and a fifth whole. It has no value.
func Problem(parameters int) *problem.Problem {
	p := &problem.Problem{Name: fmt.Sprint("cost/", parameters), Family: "cost"}
	for i := range parameters {
		q := problem.Parameter{Name: fmt.Sprint("x", i), Kind: problem.Double, Low: 0, High: 1}
		switch i % 5 {
		case 3:
			q.Low, q.Log = 1e-5, true
		case 4:
			q = problem.Parameter{Name: q.Name, Kind: problem.Int, Low: 1, High: 100}
		}
		p.Parameters = append(p.Parameters, q)
	}
	return p
}

// most is how many suggestions are averaged, as far as enough time allows.
const (
	most   = 50
	enough = 3 * time.Second
)

// average asks and tells, and fills in the figures. spent returns the processor
// time so far.
func average(ctx context.Context, f *Figure, s study.Session, asked int, limit time.Duration, spent func() time.Duration) error {
	numbers := rand.New(rand.NewPCG(3, 3))
	round := func(index int) (time.Duration, error) {
		began := spent()
		if _, err := s.Ask(ctx); err != nil {
			return 0, err
		}
		err := s.Tell(ctx, index, numbers.Float64())
		return spent() - began, err
	}
	var err error
	if f.First, err = round(asked); err != nil {
		return err
	}
	if f.First > limit {
		f.Each = f.First
		f.Over = fmt.Sprintf("> %v", limit)
		return nil
	}
	var total time.Duration
	for f.Asks < most && total < enough {
		took, err := round(asked + 1 + f.Asks)
		if err != nil {
			return err
		}
		f.Asks++
		total += took
	}
	f.Each = total / time.Duration(f.Asks)
	return nil
}

// ownPoints are the samplers, ours and peers', that only learn from points of
// their own making.
func ownPoints(optimiser string) bool { return strings.Contains(optimiser, "cmaes") }

// Ours measures one of our samplers, in this process: nothing else may run.
func Ours(ctx context.Context, name string, o study.Ours, c Cell, limit time.Duration) (Figure, error) {
	f := Figure{Optimiser: name, Cell: c}
	p := Problem(c.Parameters)
	space, err := study.Space(p)
	if err != nil {
		return f, err
	}
	sampler, err := optimize.New(o.Algorithm, o.Settings, optimize.Problem{Space: space, Seed: 1, Budget: optimize.Budget{MaxTrials: 2 * c.Past}})
	if err != nil {
		return f, err
	}
	before := heap()
	h := optimize.NewHistory(space)
	maker := optimize.NewRandom(2)
	if ownPoints(name) {
		maker = sampler
	}
	numbers := rand.New(rand.NewPCG(2, 2))
	for i := range c.Past {
		point, err := maker.Sample(ctx, h)
		if err != nil {
			return f, err
		}
		h.Add(point)
		if err := h.Tell(i, optimize.Result{State: optimize.Complete, Values: []float64{numbers.Float64()}}); err != nil {
			return f, err
		}
	}
	s := &session{study: optimize.ResumeStudy(h, sampler)}
	err = average(ctx, &f, s, c.Past, limit, processorTime)
	f.Bytes = float64(heap()-before) / float64(c.Past+1+f.Asks)
	runtime.KeepAlive(h)
	runtime.KeepAlive(s)
	return f, err
}

// session asks and tells without reading points, which is no cost of ours.
type session struct{ study *optimize.Study }

func (s *session) Ask(ctx context.Context) (problem.Point, error) {
	_, err := s.study.Ask(ctx)
	return problem.Point{}, err
}

func (s *session) Tell(_ context.Context, index int, value float64) error {
	return s.study.Tell(index, value)
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// processorTime returns what this process has used, of all its threads.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// patience is how many times the limit, which is of CPU time, a peer may
// take by the clock: for its history, and for its suggestions.
const patience = 4

// Peer measures a peer, which starts and ends for it. What it cannot do is
// said in the figure.
func Peer(ctx context.Context, name string, o *study.Peer, c Cell, limit time.Duration) (Figure, error) {
	f := Figure{Optimiser: name, Cell: c}
	defer o.Close()
	begun, err := o.Begin(ctx, Problem(c.Parameters), study.Setup{Seed: 1, Trials: 2*c.Past + 1000, Parallel: 1})
	if err != nil {
		f.Over = err.Error()
		return f, ctx.Err()
	}
	s := begun.(*study.PeerSession)
	within, cancel := context.WithTimeout(ctx, patience*limit)
	defer cancel()
	load, err := s.Load(within, c.Past)
	if err != nil {
		f.Over = fmt.Sprintf("a history of %d trials: %v", c.Past, err)
		if errors.Is(err, context.DeadlineExceeded) {
			f.Over = fmt.Sprintf("a history of %d trials takes more than %v", c.Past, patience*limit)
		}
		return f, ctx.Err()
	}
	f.Bytes = float64(load.Bytes) / float64(c.Past)
	within, cancel = context.WithTimeout(ctx, patience*limit)
	defer cancel()
	if err := average(within, &f, s, c.Past, limit, s.Spent); err != nil {
		f.First, f.Each, f.Over = 0, 0, err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			f.First, f.Each, f.Over = limit, limit, fmt.Sprintf("> %v", limit)
		}
	}
	return f, ctx.Err()
}
