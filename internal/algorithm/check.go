// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/searchspace"
)

// Assignments reads what a service suggests for an experiment: at most as many
// as were asked for, each a point of the search space. The name of suggestion i
// of the answer is name(i) where the service gives none; taken tells the names
// that other suggestions have. The error wraps [ErrWrong].
//
// The same point may come twice: the service knows why.
func Assignments(e *kubeflow.Experiment, reply *manager.GetSuggestionsReply, asked int, name func(i int) string, taken func(name string) bool) ([]kubeflow.TrialAssignment, error) {
	list := reply.GetParameterAssignments()
	if len(list) > asked {
		return nil, fmt.Errorf("%w: it made %d suggestions where %d were asked for", ErrWrong, len(list), asked)
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
			return nil, fmt.Errorf("%w: suggestion %d has the trial_name %.300q: %w", ErrWrong, i, a.Name, err)
		}
		if used[a.Name] || taken(a.Name) {
			return nil, fmt.Errorf("%w: suggestion %d has the trial_name %q, which another has", ErrWrong, i, a.Name)
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

// spaceOf returns what tells points of an experiment's search space. How a
// service writes architectures is its own matter.
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

// checkName wants a trial's name to begin as those of its experiment do, so
// that experiments stay out of each other's way.
func checkName(experiment, name string) error {
	if !strings.HasPrefix(name, experiment+"-") {
		return fmt.Errorf("want one that begins with %q", experiment+"-")
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
			problems = append(problems, "it is the controller's own")
		}
		if len(problems) > 0 {
			return fmt.Errorf("label %.300q: %.300q: %s", key, value, strings.Join(problems, "; "))
		}
	}
	return nil
}
