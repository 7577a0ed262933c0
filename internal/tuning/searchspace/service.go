// SPDX-License-Identifier: Apache-2.0

package searchspace

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// CheckForService checks that an algorithm service can search an experiment's
// parameters: that there is a search space, and no field that Katib's messages
// cannot express, which the service would ignore.
func CheckForService(spec *v1beta1.ExperimentSpec) error {
	path := field.NewPath("spec")
	conditional := slices.IndexFunc(spec.Parameters, func(p v1beta1.ParameterSpec) bool { return p.When != nil })
	for _, f := range []struct {
		used bool
		at   *field.Path
	}{
		{conditional >= 0, path.Child("parameters").Index(max(conditional, 0)).Child("when")},
		{len(spec.ParameterConstraints) > 0, path.Child("parameterConstraints")},
		{len(spec.InitialTrials) > 0, path.Child("initialTrials")},
		{spec.WarmStart != nil, path.Child("warmStart")},
		{spec.Objective != nil && len(spec.Objective.AdditionalObjectives) > 0, path.Child("objective", "additionalObjectives")},
		{spec.Objective != nil && len(spec.Objective.Constraints) > 0, path.Child("objective", "constraints")},
	} {
		if f.used {
			return field.Forbidden(f.at, "algorithm services do not support it; omit it, or use a built-in algorithm")
		}
	}
	_, err := Of(spec)
	return err
}
