// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
)

// Assignments parses a service's suggestions for an experiment: at most as many
// as were requested, each a point of the search space. The name of suggestion i
// of the response is name(i) if the service gives none; taken reports names
// that other suggestions have. The error wraps [ErrWrong].
//
// The same point may come twice: the service knows why.
func Assignments(e *kubeflow.Experiment, reply *manager.GetSuggestionsReply, asked int, name func(i int) string, taken func(name string) bool) ([]kubeflow.TrialAssignment, error) {
	list := reply.GetParameterAssignments()
	if len(list) > asked {
		return nil, fmt.Errorf("%w: it returned %d suggestions, but %d were requested", ErrWrong, len(list), asked)
	}
	inSpace, err := spaceOf(e)
	if err != nil {
		return nil, err
	}
	rules := RulesOf(reply.GetEarlyStoppingRules())
	out, used := make([]kubeflow.TrialAssignment, len(list)), map[string]bool{}
	for i, m := range list {
		a := kubeflow.TrialAssignment{
			Name: m.GetTrialName(), Labels: m.GetLabels(),
			ParameterAssignments: AssignmentsOf(m.GetAssignments()), EarlyStoppingRules: rules,
		}
		if a.Name == "" {
			a.Name = name(i)
		} else if err := checkName(e.Name, a.Name); err != nil {
			return nil, fmt.Errorf("%w: suggestion %d has trial_name %.300q: %w", ErrWrong, i, a.Name, err)
		}
		if used[a.Name] || taken(a.Name) {
			return nil, fmt.Errorf("%w: suggestion %d has trial_name %q, which is already used", ErrWrong, i, a.Name)
		}
		used[a.Name] = true
		if err := inSpace(a.ParameterAssignments); err != nil {
			return nil, fmt.Errorf("%w: suggestion %d is not in the search space: %w", ErrWrong, i, err)
		}
		if err := checkLabels(a.Labels); err != nil {
			return nil, fmt.Errorf("%w: suggestion %d: %w", ErrWrong, i, err)
		}
		out[i] = a
	}
	return out, nil
}

// spaceOf returns the search space of an experiment, for checking points. The
// format of architectures is up to the service.
func spaceOf(e *kubeflow.Experiment) (func([]kubeflow.ParameterAssignment) error, error) {
	if e.Spec.NasConfig != nil {
		return func(a []kubeflow.ParameterAssignment) error {
			if len(a) == 0 {
				return fmt.Errorf("it assigns nothing")
			}
			return nil
		}, nil
	}
	space, err := searchspace.Of(&e.Spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrong, err)
	}
	return func(a []kubeflow.ParameterAssignment) error {
		_, err := searchspace.Point(space, a)
		return err
	}, nil
}

// checkName requires that a trial's name starts with its experiment's prefix,
// so that experiments do not conflict.
func checkName(experiment, name string) error {
	if !strings.HasPrefix(name, experiment+"-") {
		return fmt.Errorf("it must start with %q", experiment+"-")
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	for key, value := range labels {
		problems := append(content.IsLabelKey(key), content.IsLabelValue(value)...)
		if strings.HasPrefix(key, "katib.kubeflow.org/") {
			problems = append(problems, "it is reserved for the controller")
		}
		if len(problems) > 0 {
			return fmt.Errorf("label %.300q: %.300q: %s", key, value, strings.Join(problems, "; "))
		}
	}
	return nil
}
