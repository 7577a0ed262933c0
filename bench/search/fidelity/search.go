// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"fmt"
	"strconv"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/study"
	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/stopping"
)

// Search is a way to spend epochs.
type Search struct {
	Name string
	// spend runs the search until the ledger is full.
	spend func(ctx context.Context, f Family, seed uint64, l *ledger) error
}

// Moment is a point of a search at which the incumbent changed.
type Moment struct {
	// Epochs were spent until then. Again is what they would be if each trial
	// on a higher rung had been trained from the start.
	Epochs, Again int
	// Actual is how good the incumbent is.
	Actual float64
}

// ledger counts the epochs of a search.
type ledger struct {
	budget        int // epochs after which the search ends
	target        float64
	epochs, again int
	best          float64 // the incumbent's observed loss
	moments       []Moment
}

// full reports whether the search is to end: with a target when it is reached.
func (l *ledger) full() bool {
	if n := len(l.moments); n > 0 && l.moments[n-1].Actual <= l.target {
		return true
	}
	return l.epochs >= l.budget
}

// enter takes in a trial that has ended, and returns the loss observed.
func (l *ledger) enter(c Curve) float64 {
	observed := c.Observed()
	if len(l.moments) == 0 || observed < l.best {
		l.best = observed
		l.moments = append(l.moments, Moment{l.epochs, l.again, c.Actual()})
	}
	return observed
}

// Run runs a search until it has spent a budget of epochs, or has an incumbent
// that is as good as a target, and returns how that came.
func Run(ctx context.Context, s Search, f Family, seed uint64, budget int, target float64) ([]Moment, error) {
	l := &ledger{budget: budget, target: target}
	if err := s.spend(ctx, f, seed, l); err != nil {
		return nil, fmt.Errorf("cannot run %s on %s: %w", s.Name, f.Name, err)
	}
	return l.moments, nil
}

// Random is random search that trains each trial to the end.
func Random() Search {
	return Stopped("random", nil, "random", "", nil)
}

// resource is the name of the parameter that says how many epochs a trial has.
const resource = "epochs"

// Rungs is a search over the resource.
func Rungs(name string, sampler func(space *optimize.Space, seed uint64) (optimize.Sampler, error)) Search {
	return Search{name, func(ctx context.Context, f Family, seed uint64, l *ledger) error {
		parameters := append([]problem.Parameter{{Name: resource, Kind: problem.Int, Low: 1, High: Epochs}}, f.Parameters...)
		p := &problem.Problem{Parameters: parameters}
		space, err := study.Space(p)
		if err != nil {
			return err
		}
		s, err := sampler(space, seed)
		if err != nil {
			return err
		}
		search := optimize.NewStudy(space, optimize.Options{Sampler: s})
		var curves []Curve // by trial
		var spent []int
		for !l.full() {
			trial, err := search.Ask(ctx)
			if err != nil {
				return err
			}
			epochs, have := trial.Point.Int(resource), 0
			if parent, err := strconv.Atoi(trial.Point.Labels()[optimize.LabelParent]); err == nil {
				curves, have = append(curves, curves[parent]), spent[parent]
			} else {
				at, err := coordinates(p, trial.Point)
				if err != nil {
					return err
				}
				curves = append(curves, f.Begin(at[1:], seed))
			}
			spent = append(spent, epochs)
			l.epochs += epochs - have
			l.again += epochs
			curves[trial.Index].Train(epochs)
			if err := search.Tell(trial.Index, l.enter(curves[trial.Index])); err != nil {
				return err
			}
		}
		return nil
	}}
}

// coordinates returns a point of ours as the problem has it.
func coordinates(p *problem.Problem, point optimize.Point) ([]float64, error) {
	texts := map[string]string{}
	for _, a := range point.Assignments() {
		texts[a.Name] = a.Value
	}
	read, err := p.Read(texts)
	return read.At, err
}

// Stopped is a search of which each trial is stopped by a rule of ours; rule ""
// stops none.
func Stopped(name string, settings map[string]string, algorithm, rule string, ruleSettings map[string]string) Search {
	return Search{name, func(ctx context.Context, f Family, seed uint64, l *ledger) error {
		p := &problem.Problem{Parameters: f.Parameters}
		space, err := study.Space(p)
		if err != nil {
			return err
		}
		sampler, err := optimize.New(algorithm, settings, optimize.Problem{Space: space, Seed: seed})
		if err != nil {
			return err
		}
		o := optimize.Options{Sampler: sampler}
		if rule != "" {
			if o.Stopping, err = stopping.New(rule, ruleSettings); err != nil {
				return err
			}
		}
		search := optimize.NewStudy(space, o)
		for !l.full() {
			trial, err := search.Ask(ctx)
			if err != nil {
				return err
			}
			at, err := coordinates(p, trial.Point)
			if err != nil {
				return err
			}
			report := func(epoch int, observed float64) (bool, error) {
				stop, _, err := search.Report(trial.Index, epoch, observed)
				return stop, err
			}
			if rule == "" {
				report = nil
			}
			observed, stopped, err := train(l, f.Begin(at, seed), report)
			switch {
			case err != nil:
				return err
			case stopped:
				err = search.Stop(trial.Index)
			default:
				err = search.Tell(trial.Index, observed)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// train trains to the end, or until a report is answered by stop.
func train(l *ledger, c Curve, report func(epoch int, observed float64) (stop bool, err error)) (observed float64, stopped bool, err error) {
	for epoch := 1; epoch <= Epochs && !stopped; epoch++ {
		c.Train(epoch)
		l.epochs++
		l.again++
		if report == nil {
			continue
		}
		if stopped, err = report(epoch, c.Observed()); err != nil {
			return 0, false, err
		}
	}
	return l.enter(c), stopped, nil
}
