// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateSpace checks that the search space is given in exactly one form.
func (s *ExperimentSpec) validateSpace(path *field.Path) field.ErrorList {
	parameters := path.Child("parameters")
	switch n := len(s.Parameters); {
	case n == 0 && s.NasConfig == nil:
		return field.ErrorList{field.Required(parameters, "specify what to search: at least one parameter, or spec.nasConfig")}
	case n > 0 && s.NasConfig != nil:
		return field.ErrorList{field.Forbidden(path.Child("nasConfig"), "must not be set together with spec.parameters")}
	case s.NasConfig != nil && len(s.ParameterConstraints) > 0:
		return field.ErrorList{field.Forbidden(path.Child("parameterConstraints"), "spec.nasConfig has no parameters to constrain")}
	case s.NasConfig != nil:
		return s.NasConfig.validate(path.Child("nasConfig"))
	case n > MaxParameters:
		return field.ErrorList{field.TooMany(parameters, n, MaxParameters)}
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(s.Parameters))
	for i := range s.Parameters {
		errs = append(errs, s.Parameters[i].validateIn(parameters.Index(i), seen)...)
	}
	for i := range s.Parameters {
		errs = append(errs, s.Parameters[i].When.validate(parameters.Index(i).Child("when"), seen)...)
	}
	if n := len(s.ParameterConstraints); n > MaxConstraints {
		errs = append(errs, field.TooMany(path.Child("parameterConstraints"), n, MaxConstraints))
	}
	return errs
}

// validate checks a condition on another parameter. Whether it can hold is
// left to Algorithms.Check.
func (c *ParameterCondition) validate(path *field.Path, known map[string]bool) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	switch {
	case c.Parameter == "":
		errs = append(errs, field.Required(path.Child("parameter"), "name the parameter on which this one depends"))
	case !known[c.Parameter]:
		errs = append(errs, field.NotFound(path.Child("parameter"), shorten(c.Parameter)))
	}
	switch n := len(c.Values); {
	case n == 0:
		errs = append(errs, field.Required(path.Child("values"), "specify the values of the other parameter for which this one exists"))
	case n > MaxListLength:
		errs = append(errs, field.TooMany(path.Child("values"), n, MaxListLength))
	}
	return errs
}

// validateStart checks initial trials and the warm start.
func (s *ExperimentSpec) validateStart(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch n := len(s.InitialTrials); {
	case n > MaxInitialTrials:
		errs = append(errs, field.TooMany(path.Child("initialTrials"), n, MaxInitialTrials))
	case s.MaxTrialCount != nil && n > int(*s.MaxTrialCount):
		errs = append(errs, field.Invalid(path.Child("initialTrials"), n, fmt.Sprintf("are more trials than spec.maxTrialCount, %d", *s.MaxTrialCount)))
	}
	if s.WarmStart == nil {
		return errs
	}
	names := path.Child("warmStart", "experiments")
	switch n := len(s.WarmStart.Experiments); {
	case n == 0:
		return append(errs, field.Required(names, "name the experiments to learn from"))
	case n > MaxSources:
		return append(errs, field.TooMany(names, n, MaxSources))
	}
	for i, name := range s.WarmStart.Experiments {
		if name == "" {
			errs = append(errs, field.Required(names.Index(i), "name an experiment in the same namespace"))
		}
	}
	return errs
}

func (p *ParameterSpec) validate(path *field.Path) field.ErrorList {
	space := path.Child("feasibleSpace")
	var errs field.ErrorList
	switch p.FeasibleSpace.Distribution {
	case "", DistributionUniform, DistributionLogUniform, DistributionNormal, DistributionLogNormal, DistributionUnknown:
	default:
		errs = append(errs, field.NotSupported(space.Child("distribution"), Distribution(shorten(string(p.FeasibleSpace.Distribution))),
			[]Distribution{DistributionUniform, DistributionLogUniform, DistributionNormal, DistributionLogNormal}))
	}
	switch p.ParameterType {
	case ParameterTypeDouble, ParameterTypeInt:
		return append(errs, p.FeasibleSpace.validateRange(space, p.ParameterType)...)
	case ParameterTypeDiscrete, ParameterTypeCategorical:
		return append(errs, p.FeasibleSpace.validateList(space, p.ParameterType)...)
	}
	return append(errs, field.NotSupported(path.Child("parameterType"), ParameterType(shorten(string(p.ParameterType))),
		[]ParameterType{ParameterTypeDouble, ParameterTypeInt, ParameterTypeDiscrete, ParameterTypeCategorical}))
}

// validateRange checks the space of a number: min, max and, optionally, step.
func (f *FeasibleSpace) validateRange(path *field.Path, t ParameterType) field.ErrorList {
	var errs field.ErrorList
	if len(f.List) > 0 {
		errs = append(errs, field.Forbidden(path.Child("list"), fmt.Sprintf("a parameter of type %s takes min and max instead", t)))
	}
	number := func(name, text string) (float64, bool) {
		value, err := parseNumber(text, t)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child(name), shorten(text), err.Error()))
		}
		return value, err == nil
	}
	bound := func(name, text string) (float64, bool) {
		if text == "" {
			errs = append(errs, field.Required(path.Child(name), fmt.Sprintf("a parameter of type %s needs min and max", t)))
			return 0, false
		}
		return number(name, text)
	}
	least, okLeast := bound("min", f.Min)
	most, okMost := bound("max", f.Max)
	if okLeast && okMost && least > most {
		errs = append(errs, field.Invalid(path.Child("min"), f.Min, "must not be greater than max, which is "+f.Max))
	}
	if f.Step != "" {
		// The search drops the fractional part of an int's step.
		if step, err := parseNumber(f.Step, ParameterTypeDouble); err != nil {
			errs = append(errs, field.Invalid(path.Child("step"), shorten(f.Step), err.Error()))
		} else if step <= 0 {
			errs = append(errs, field.Invalid(path.Child("step"), f.Step, "must be greater than 0; omit it for any value between min and max"))
		}
	}
	return errs
}

// validateList checks the space of a choice: its list.
func (f *FeasibleSpace) validateList(path *field.Path, t ParameterType) field.ErrorList {
	var errs field.ErrorList
	for _, limit := range []struct{ name, value string }{{"min", f.Min}, {"max", f.Max}, {"step", f.Step}} {
		if limit.value != "" {
			errs = append(errs, field.Forbidden(path.Child(limit.name), fmt.Sprintf("a parameter of type %s takes a list instead", t)))
		}
	}
	list := path.Child("list")
	switch n := len(f.List); {
	case n == 0:
		return append(errs, field.Required(list, fmt.Sprintf("a parameter of type %s needs the values to choose from", t)))
	case n > MaxListLength:
		return append(errs, field.TooMany(list, n, MaxListLength))
	}
	if t == ParameterTypeCategorical {
		return errs
	}
	for i, text := range f.List {
		if _, err := parseNumber(text, ParameterTypeDouble); err != nil {
			errs = append(errs, field.Invalid(list.Index(i), shorten(text), err.Error()+"; for other values use the type categorical"))
		}
	}
	return errs
}

// parseNumber parses a finite number, or an integer for the type int.
func parseNumber(text string, t ParameterType) (float64, error) {
	if t == ParameterTypeInt {
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return 0, errors.New("must fit in 64 bits")
		case err != nil:
			return 0, errors.New(`must be an integer, for example "10"`)
		}
		return float64(n), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("must be a number in the range of 64-bit floating point")
	case err != nil:
		return 0, errors.New(`must be a number, for example "0.01"`)
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, errors.New("must be a finite number")
	}
	return v, nil
}
