// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/optimize"
)

// missing returns which fields a request lacks to be searched by an algorithm,
// by their names in the message, or nil. Fields that a program never set, or set
// under another name, look the same here. A wrong setting is named beside them.
func missing(m *manager.Experiment, a *kubeflow.AlgorithmSpec) error {
	switch {
	case m == nil:
		return errors.New("experiment is missing")
	case m.Spec == nil:
		return errors.New("experiment.spec is missing")
	case a == nil:
		return errors.New("experiment.spec.algorithm is missing")
	case a.AlgorithmName == "":
		return errors.New("experiment.spec.algorithm.algorithm_name is missing")
	}
	problems := missingSpace(m.Spec, a.AlgorithmName)
	if len(problems) == 0 {
		return nil
	}
	wrong := optimize.CheckSettings(a.AlgorithmName, searchspace.Settings(a.AlgorithmSettings), optimize.Problem{})
	return errors.Join(append([]error{wrong}, problems...)...)
}

// missingSpace returns the missing fields of the search space.
func missingSpace(spec *manager.ExperimentSpec, name string) []error {
	parameters := spec.GetParameterSpecs().GetParameters()
	switch {
	case spec.NasConfig != nil:
		return nil // its own errors name the fields
	case name == "enas" || name == "darts":
		return []error{fmt.Errorf("experiment.spec.nas_config is missing: algorithm %s searches architectures", name)}
	case len(parameters) == 0:
		return []error{errors.New("experiment.spec.parameter_specs.parameters is empty: want at least one parameter")}
	}
	var problems []error
	for i, p := range parameters {
		for _, field := range missingFields(p) {
			problems = append(problems, fmt.Errorf("parameter %.300q: experiment.spec.parameter_specs.parameters[%d].%s", p.GetName(), i, field))
		}
	}
	return problems
}

// missingFields returns the missing fields of a parameter.
func missingFields(p *manager.ParameterSpec) (fields []string) {
	if p.GetName() == "" {
		fields = append(fields, "name is missing")
	}
	space := p.GetFeasibleSpace()
	switch kind := p.GetParameterType(); kind {
	case manager.ParameterType_DOUBLE, manager.ParameterType_INT:
		for _, bound := range []struct{ name, value string }{{"min", space.GetMin()}, {"max", space.GetMax()}} {
			if bound.value == "" {
				fields = append(fields, fmt.Sprintf("feasible_space.%s is missing: parameter_type is %s", bound.name, kind))
			}
		}
	case manager.ParameterType_DISCRETE, manager.ParameterType_CATEGORICAL:
		if len(space.GetList()) == 0 {
			fields = append(fields, fmt.Sprintf("feasible_space.list is missing: parameter_type is %s", kind))
		}
	default:
		fields = append(fields, fmt.Sprintf("parameter_type is %s: want DOUBLE, INT, DISCRETE or CATEGORICAL", kind))
	}
	return fields
}
