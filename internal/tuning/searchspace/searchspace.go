// SPDX-License-Identifier: Apache-2.0

// Package searchspace converts an Experiment to the terms of package
// optimize: its parameters to a space, its algorithm's settings to a map, its
// objective to a direction. Admission and the Suggestion controller both use
// it, so that what is admitted can be searched.
package searchspace

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/optimize"
)

// Of returns the space that an experiment searches: that of its parameters,
// those points of it that satisfy its constraints, or that of the architectures
// that its nasConfig allows. The error names the parameter, constraint or
// operation and what is wrong with it; a *field.Error also where it is.
func Of(spec *v1beta1.ExperimentSpec) (*optimize.Space, error) {
	if spec.NasConfig != nil {
		return architectures(spec)
	}
	if len(spec.Parameters) == 0 {
		return nil, errors.New("the search space is empty: set spec.parameters, or spec.nasConfig for architectures")
	}
	parameters, err := parameters(spec.Parameters)
	if err != nil {
		return nil, err
	}
	if a := spec.Algorithm; a != nil {
		parameters = optimize.ForAlgorithm(a.AlgorithmName, Settings(a.AlgorithmSettings), parameters)
	}
	space, err := optimize.NewSpace(parameters...)
	if err != nil || len(spec.ParameterConstraints) == 0 {
		return space, err
	}
	path := field.NewPath("spec", "parameterConstraints")
	constraints := make([]optimize.Constraint, len(spec.ParameterConstraints))
	for i, text := range spec.ParameterConstraints {
		if constraints[i], err = constraint(text, parameters); err != nil {
			return nil, field.Invalid(path.Index(i), text, err.Error())
		}
	}
	if space, err = space.Constrained(constraints...); err != nil {
		return nil, field.Invalid(path, field.OmitValueType{}, err.Error())
	}
	return space, nil
}

// Initial returns the points with which an experiment's search begins.
func Initial(spec *v1beta1.ExperimentSpec, space *optimize.Space) ([]optimize.Point, error) {
	points := make([]optimize.Point, len(spec.InitialTrials))
	for i, t := range spec.InitialTrials {
		path := field.NewPath("spec", "initialTrials").Index(i)
		point, err := Point(space, t.ParameterAssignments)
		if err != nil {
			return nil, field.Invalid(path, field.OmitValueType{}, err.Error())
		}
		if !space.Feasible(point) {
			return nil, field.Invalid(path, field.OmitValueType{}, "it does not satisfy spec.parameterConstraints")
		}
		points[i] = point
	}
	return points, nil
}

func parameters(specs []v1beta1.ParameterSpec) ([]optimize.Parameter, error) {
	all := make([]optimize.Parameter, 0, len(specs))
	for _, p := range specs {
		s := p.FeasibleSpace
		parameter, err := optimize.Declaration{
			Name:         p.Name,
			Kind:         optimize.Kind(p.ParameterType),
			Min:          s.Min,
			Max:          s.Max,
			Step:         s.Step,
			Distribution: distribution(&p),
			List:         s.List,
		}.Parameter()
		if err != nil {
			return nil, err
		}
		if p.When != nil {
			parameter = parameter.When(p.When.Parameter, p.When.Values...)
		}
		all = append(all, parameter)
	}
	return all, nil
}

// distribution returns how a parameter's values are drawn. As in Katib, one
// that is unknown is uniform, and a list has none, whatever the manifest says.
func distribution(p *v1beta1.ParameterSpec) optimize.Distribution {
	switch {
	case p.FeasibleSpace.Distribution == v1beta1.DistributionUnknown,
		p.ParameterType == v1beta1.ParameterTypeDiscrete,
		p.ParameterType == v1beta1.ParameterTypeCategorical:
		return optimize.Uniform
	}
	return optimize.Distribution(p.FeasibleSpace.Distribution)
}

// Settings returns an algorithm's settings by name. Later lists override
// earlier ones.
func Settings(lists ...[]v1beta1.AlgorithmSetting) map[string]string {
	settings := map[string]string{}
	for _, list := range lists {
		for _, s := range list {
			settings[s.Name] = s.Value
		}
	}
	return settings
}

// Directions returns which values of each objective are better, its own first.
func Directions(o *v1beta1.ObjectiveSpec) []optimize.Direction {
	if o == nil {
		return []optimize.Direction{optimize.Minimize}
	}
	directions := []optimize.Direction{direction(o.Type)}
	for _, a := range o.AdditionalObjectives {
		directions = append(directions, direction(a.Type))
	}
	return directions
}

func direction(t v1beta1.ObjectiveType) optimize.Direction {
	if t == v1beta1.ObjectiveTypeMaximize {
		return optimize.Maximize
	}
	return optimize.Minimize
}

// Check checks that an experiment's algorithm can search its parameters
// within its budget.
func Check(spec *v1beta1.ExperimentSpec) error {
	if spec.Algorithm == nil {
		return fmt.Errorf("spec.algorithm is missing")
	}
	name, settings := spec.Algorithm.AlgorithmName, Settings(spec.Algorithm.AlgorithmSettings)
	if name == "" {
		return fmt.Errorf("spec.algorithm.algorithmName is missing")
	}
	space, err := Of(spec)
	if err != nil { // which may not be the only mistake, nor the first
		return errors.Join(optimize.CheckSettings(name, settings, optimize.Problem{}), err)
	}
	if _, err := Initial(spec, space); err != nil {
		return err
	}
	problem := optimize.Problem{Space: space, Budget: Budget(spec)}
	if err := optimize.CheckSettings(name, settings, problem); err != nil {
		return err
	}
	return checkObjectives(spec, problem)
}

// checkObjectives checks that an algorithm supports several objectives, by
// asking for a first suggestion.
func checkObjectives(spec *v1beta1.ExperimentSpec, problem optimize.Problem) error {
	directions := Directions(spec.Objective)
	if len(directions) == 1 {
		return nil
	}
	sampler, err := optimize.New(spec.Algorithm.AlgorithmName, Settings(spec.Algorithm.AlgorithmSettings), problem)
	if err == nil {
		_, err = sampler.Sample(context.Background(), optimize.NewHistory(problem.Space, directions...))
	}
	return err
}

// Budget returns the budget of an experiment's search.
func Budget(spec *v1beta1.ExperimentSpec) optimize.Budget {
	return optimize.Budget{
		MaxTrials: int(ptr.Deref(spec.MaxTrialCount, 0)),
		Parallel:  int(ptr.Deref(spec.ParallelTrialCount, 0)),
	}
}

// Assignments converts a point to a trial's parameter assignments.
func Assignments(p optimize.Point) []v1beta1.ParameterAssignment {
	from := p.Assignments()
	assignments := make([]v1beta1.ParameterAssignment, len(from))
	for i, a := range from {
		assignments[i] = v1beta1.ParameterAssignment{Name: a.Name, Value: a.Value}
	}
	return assignments
}

// Point returns the point that a trial's assignments name.
func Point(space *optimize.Space, assignments []v1beta1.ParameterAssignment) (optimize.Point, error) {
	to := make([]optimize.Assignment, len(assignments))
	for i, a := range assignments {
		to[i] = optimize.Assignment{Name: a.Name, Value: a.Value}
	}
	return space.Parse(to)
}
