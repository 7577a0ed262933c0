// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (o *ObjectiveSpec) validate(path *field.Path) field.ErrorList {
	if o == nil {
		return field.ErrorList{field.Required(path, "specify what to optimize: type and objectiveMetricName")}
	}
	var errs field.ErrorList
	if o.Type != ObjectiveTypeMinimize && o.Type != ObjectiveTypeMaximize {
		errs = append(errs, field.NotSupported(path.Child("type"), ObjectiveType(shorten(string(o.Type))),
			[]ObjectiveType{ObjectiveTypeMinimize, ObjectiveTypeMaximize}))
	}
	if o.ObjectiveMetricName == "" {
		errs = append(errs, field.Required(path.Child("objectiveMetricName"), "name the metric that the program reports"))
	}
	additional := path.Child("additionalMetricNames")
	if len(o.AdditionalMetricNames) > MaxNames {
		return append(errs, field.TooMany(additional, len(o.AdditionalMetricNames), MaxNames))
	}
	if i := slices.Index(o.AdditionalMetricNames, o.ObjectiveMetricName); i >= 0 {
		errs = append(errs, field.Invalid(additional.Index(i), shorten(o.ObjectiveMetricName),
			"must not be spec.objective.objectiveMetricName, which is collected anyway"))
	}
	errs = append(errs, o.validateFurther(path)...)
	return append(errs, validateStrategies(o.MetricStrategies, path.Child("metricStrategies"))...)
}

// validateFurther checks additional objectives and the constraints.
func (o *ObjectiveSpec) validateFurther(path *field.Path) field.ErrorList {
	further, constraints := path.Child("additionalObjectives"), path.Child("constraints")
	switch {
	case len(o.AdditionalObjectives) >= MaxObjectives:
		return field.ErrorList{field.TooMany(further, len(o.AdditionalObjectives), MaxObjectives-1)}
	case len(o.Constraints) > MaxConstraints:
		return field.ErrorList{field.TooMany(constraints, len(o.Constraints), MaxConstraints)}
	}
	var errs field.ErrorList
	seen := map[string]bool{o.ObjectiveMetricName: true}
	for i, a := range o.AdditionalObjectives {
		at := further.Index(i)
		if a.Type != ObjectiveTypeMinimize && a.Type != ObjectiveTypeMaximize {
			errs = append(errs, field.NotSupported(at.Child("type"), ObjectiveType(shorten(string(a.Type))),
				[]ObjectiveType{ObjectiveTypeMinimize, ObjectiveTypeMaximize}))
		}
		switch {
		case a.MetricName == "":
			errs = append(errs, field.Required(at.Child("metricName"), "name the metric that the program reports"))
		case seen[a.MetricName]:
			errs = append(errs, field.Duplicate(at.Child("metricName"), shorten(a.MetricName)))
		}
		seen[a.MetricName] = true
	}
	for i, c := range o.Constraints {
		errs = append(errs, c.validate(constraints.Index(i))...)
	}
	return errs
}

func (c *MetricConstraint) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.MetricName == "" {
		errs = append(errs, field.Required(path.Child("metricName"), "name the metric that the program reports"))
	}
	switch {
	case c.Min == nil && c.Max == nil:
		errs = append(errs, field.Required(path, "specify the allowed values: min, max or both"))
	case c.Min != nil && c.Max != nil && *c.Min > *c.Max:
		errs = append(errs, field.Invalid(path.Child("min"), *c.Min, fmt.Sprintf("must not be greater than max, which is %v", *c.Max)))
	}
	return errs
}

func validateStrategies(strategies []MetricStrategy, path *field.Path) field.ErrorList {
	if len(strategies) > 2*MaxNames {
		return field.ErrorList{field.TooMany(path, len(strategies), 2*MaxNames)}
	}
	var errs field.ErrorList
	for i, s := range strategies {
		switch s.Value {
		case ExtractByMin, ExtractByMax, ExtractByLatest:
		default:
			errs = append(errs, field.NotSupported(path.Index(i).Child("value"), MetricStrategyType(shorten(string(s.Value))),
				[]MetricStrategyType{ExtractByMin, ExtractByMax, ExtractByLatest}))
		}
	}
	return errs
}

func (s *ExperimentSpec) validateAlgorithms(path *field.Path, known Algorithms) field.ErrorList {
	var errs field.ErrorList
	if s.Algorithm == nil {
		errs = append(errs, field.Required(path.Child("algorithm"), "specify a search algorithm, for example algorithmName: random"))
	} else {
		at := path.Child("algorithm")
		errs = append(errs, validateAlgorithmName(s.Algorithm.AlgorithmName, at.Child("algorithmName"), known.Search)...)
		errs = append(errs, validateSettings(len(s.Algorithm.AlgorithmSettings), at.Child("algorithmSettings"))...)
	}
	if s.EarlyStopping != nil {
		errs = append(errs, s.EarlyStopping.validate(path.Child("earlyStopping"), known)...)
	}
	return errs
}

func (s *EarlyStoppingSpec) validate(at *field.Path, known Algorithms) field.ErrorList {
	errs := validateAlgorithmName(s.AlgorithmName, at.Child("algorithmName"), known.EarlyStopping)
	errs = append(errs, validateSettings(len(s.AlgorithmSettings), at.Child("algorithmSettings"))...)
	if len(errs) == 0 && known.CheckEarlyStopping != nil {
		if err := known.CheckEarlyStopping(s); err != nil {
			errs = append(errs, field.Invalid(at.Child("algorithmSettings"), s.AlgorithmName, err.Error()))
		}
	}
	return errs
}

func validateAlgorithmName(name string, path *field.Path, known map[string]bool) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, oneOf("name an algorithm", known))}
	}
	available, ok := known[name]
	switch {
	case !ok:
		return field.ErrorList{field.Invalid(path, shorten(name), oneOf("unknown algorithm", known))}
	case !available:
		return field.ErrorList{field.Invalid(path, name, oneOf("not yet available in this version", known))}
	}
	return nil
}

// oneOf adds the names that are available to a message.
func oneOf(message string, known map[string]bool) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(n string) bool { return !known[n] })
	if len(names) == 0 {
		return message + "; none is available"
	}
	return fmt.Sprintf("%s; known: %s", message, strings.Join(names, ", "))
}

func validateSettings(n int, path *field.Path) field.ErrorList {
	if n > MaxNames {
		return field.ErrorList{field.TooMany(path, n, MaxNames)}
	}
	return nil
}
