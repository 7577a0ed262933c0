// SPDX-License-Identifier: Apache-2.0

package study

import (
	"context"
	"errors"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/optimize"
)

// Ours is one of our samplers.
type Ours struct {
	// Algorithm is its name, Settings what differs from its defaults.
	Algorithm string
	Settings  map[string]string
}

// Begin makes the sampler and an empty history.
func (o Ours) Begin(_ context.Context, p *problem.Problem, s Setup) (Session, error) {
	study, err := o.Study(p, s)
	return &ours{problem: p, study: study}, err
}

// Study returns a study of a problem that has not begun.
func (o Ours) Study(p *problem.Problem, s Setup) (*optimize.Study, error) {
	space, err := Space(p)
	if err != nil {
		return nil, err
	}
	sampler, err := optimize.New(o.Algorithm, o.Settings, optimize.Problem{
		Space: space, Seed: s.Seed, Budget: optimize.Budget{MaxTrials: s.Trials, Parallel: s.Parallel},
	})
	if err != nil {
		return nil, err
	}
	return optimize.NewStudy(space, optimize.Options{Sampler: sampler}), nil
}

// Close does nothing.
func (Ours) Close() error { return nil }

type ours struct {
	problem *problem.Problem
	study   *optimize.Study
}

func (s *ours) Ask(ctx context.Context) (problem.Point, error) {
	trial, err := s.study.Ask(ctx)
	if errors.Is(err, optimize.ErrExhausted) {
		return problem.Point{}, ErrExhausted
	} else if err != nil {
		return problem.Point{}, err
	}
	texts := map[string]string{}
	for _, a := range trial.Point.Assignments() {
		texts[a.Name] = a.Value
	}
	return s.problem.Read(texts)
}

func (s *ours) Tell(_ context.Context, index int, value float64) error {
	return s.study.Tell(index, value)
}

// Space returns a problem's parameters as a space of ours.
func Space(p *problem.Problem) (*optimize.Space, error) {
	parameters := make([]optimize.Parameter, len(p.Parameters))
	for i, q := range p.Parameters {
		parameters[i] = parameter(q)
	}
	return optimize.NewSpace(parameters...)
}

func parameter(q problem.Parameter) optimize.Parameter {
	var p optimize.Parameter
	switch q.Kind {
	case problem.Int:
		p = optimize.Int(q.Name, int(q.Low), int(q.High))
	case problem.Categorical:
		p = optimize.Categorical(q.Name, q.Choices...)
	default:
		p = optimize.Double(q.Name, q.Low, q.High)
	}
	if q.Log {
		p = p.Log()
	}
	if q.Parent != "" {
		p = p.When(q.Parent, q.Values...)
	}
	return p
}
