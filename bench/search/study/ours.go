// SPDX-License-Identifier: Apache-2.0

package study

import (
	"context"
	"errors"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/optimize"
)

// Ours is one of our samplers by the name of its algorithm, with its defaults.
type Ours string

// Begin makes the sampler and an empty history.
func (o Ours) Begin(_ context.Context, p *problem.Problem, s Setup) (Session, error) {
	space, err := Space(p)
	if err != nil {
		return nil, err
	}
	sampler, err := optimize.New(string(o), nil, space, s.Seed)
	if err != nil {
		return nil, err
	}
	return &ours{problem: p, study: optimize.NewStudy(space, optimize.Options{Sampler: sampler})}, nil
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
		switch q.Kind {
		case problem.Int:
			parameters[i] = optimize.Int(q.Name, int(q.Low), int(q.High))
		case problem.Categorical:
			parameters[i] = optimize.Categorical(q.Name, q.Choices...)
		default:
			parameters[i] = optimize.Double(q.Name, q.Low, q.High)
		}
		if q.Log {
			parameters[i] = parameters[i].Log()
		}
	}
	return optimize.NewSpace(parameters...)
}
