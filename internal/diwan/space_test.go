// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// narrowed gives an experiment a parameter that only some trials have, a
// constraint and trials to begin with.
func narrowed(e *v1beta1.Experiment) {
	e.Spec.Parameters = append(e.Spec.Parameters,
		v1beta1.ParameterSpec{Name: "optimizer", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"sgd", "adam"}}},
		v1beta1.ParameterSpec{Name: "momentum", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"},
			When: &v1beta1.ParameterCondition{Parameter: "optimizer", Values: []string{"sgd"}}})
	e.Spec.ParameterConstraints = []string{`x <= 20 or optimizer == "adam"`, "momentum < 0.5"}
	e.Spec.InitialTrials = []v1beta1.InitialTrial{
		{ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "x", Value: "50"}, {Name: "optimizer", Value: "adam"}}},
		{ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "x", Value: "7"}, {Name: "optimizer", Value: "sgd"}, {Name: "momentum", Value: "0.25"}}},
	}
	template := e.Spec.TrialTemplate
	for _, name := range []string{"optimizer", "momentum"} {
		template.TrialParameters = append(template.TrialParameters, v1beta1.TrialParameterSpec{Name: name, Reference: name})
	}
	pod := template.TrialSpec.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	pod["containers"].([]any)[0].(map[string]any)["args"] = []any{
		"${trialParameters.x}", "--optimizer=${trialParameters.optimizer}", "--momentum=${trialParameters.momentum}",
	}
}

// TestNarrowedSpace checks that each trial is one that the spec allows, that
// those asked for come first, and that an argument is there only where its
// parameter is.
func TestNarrowedSpace(t *testing.T) {
	for _, algorithm := range []string{"random", "tpe", "bayesianoptimization", "auto"} {
		t.Run(algorithm, func(t *testing.T) {
			l := newLab(t, score)
			e := l.experiment("narrowed", 2, 16, narrowed, func(e *v1beta1.Experiment) { e.Spec.Algorithm.AlgorithmName = algorithm })
			l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
			for _, trial := range l.trials() {
				checkNarrowed(t, e, &trial)
			}
		})
	}
}

func checkNarrowed(t *testing.T, e *v1beta1.Experiment, trial *v1beta1.Trial) {
	t.Helper()
	values := map[string]string{}
	for _, a := range trial.Spec.ParameterAssignments {
		values[a.Name] = a.Value
	}
	x, err := strconv.Atoi(values["x"])
	if err != nil {
		t.Fatal(err)
	}
	momentum, has := values["momentum"]
	if sgd := values["optimizer"] == "sgd"; sgd != has || sgd && x > 20 || momentum >= "0.5" {
		t.Errorf("trial %s has %v, which the spec does not allow", trial.Name, values)
	}
	if args := fmt.Sprint(trial.Spec.RunSpec.Object); strings.Contains(args, "--momentum=") != has {
		t.Errorf("trial %s with %v has the arguments %s", trial.Name, values, args)
	}
	index, err := strconv.Atoi(trial.Annotations[v1beta1.AnnotationTrialIndex])
	if err != nil {
		t.Fatal(err)
	}
	if first := e.Spec.InitialTrials; index < len(first) && !slices.Equal(first[index].ParameterAssignments, trial.Spec.ParameterAssignments) {
		t.Errorf("trial %d has %v, want what was asked for: %v", index, values, first[index])
	}
}

// TestWarmStart has an experiment learn from another, whose best point it tries
// first.
func TestWarmStart(t *testing.T) {
	l := newLab(t, score)
	first := l.experiment("first", 4, 20)
	l.waitFor(first, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	second := l.experiment("second", 1, 1, func(e *v1beta1.Experiment) {
		e.Spec.Algorithm.AlgorithmName = "tpe"
		e.Spec.WarmStart = &v1beta1.WarmStartSpec{Experiments: []string{"first"}}
	})
	l.waitFor(second, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	best, tried := first.Status.CurrentOptimalTrial.ParameterAssignments, second.Status.CurrentOptimalTrial.ParameterAssignments
	if !slices.Equal(best, tried) {
		t.Errorf("the first trial has %v, want the best of the earlier experiment: %v", tried, best)
	}
}

// TestWarmStartFromNothing checks that an experiment that is to learn from one
// that is not there says so.
func TestWarmStartFromNothing(t *testing.T) {
	l := newLab(t, score)
	e := l.experiment("alone", 1, 1, func(e *v1beta1.Experiment) {
		e.Spec.WarmStart = &v1beta1.WarmStartSpec{Experiments: []string{"gone"}}
	})
	l.waitFor(e, v1beta1.ConditionFailed, v1beta1.ReasonExperimentFailed)
	if c := e.Status.Conditions.Get(v1beta1.ConditionFailed); !strings.Contains(c.Message, `spec.warmStart.experiments[0]: Not found: "gone"`) {
		t.Errorf("the experiment failed with %q", c.Message)
	}
}
