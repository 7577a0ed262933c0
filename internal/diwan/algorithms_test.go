// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialname"
	"diwan.dev/diwan/optimize"
)

// TestAlgorithms runs an experiment with each algorithm of the library to its
// end.
func TestAlgorithms(t *testing.T) {
	for _, algorithm := range optimize.Known() {
		t.Run(algorithm.Name, func(t *testing.T) {
			l := newLab(t, score)
			e := l.experiment(algorithm.Name, 3, 12, func(e *v1beta1.Experiment) { searchBy(e, algorithm.Name) })
			want, reason := 12, v1beta1.ReasonExperimentMaxTrialsReached
			if algorithm.Name == "darts" {
				want, reason = 1, v1beta1.ReasonExperimentSuggestionEndReached
			}
			l.waitFor(e, v1beta1.ConditionSucceeded, reason)
			trials := l.trials()
			if len(trials) != want || int(e.Status.TrialsSucceeded) != want || e.Status.CurrentOptimalTrial.BestTrialName == "" {
				t.Errorf("%d trials, want %d, and the experiment ended with %+v", len(trials), want, e.Status)
			}
			for _, trial := range trials {
				for label, value := range trial.Spec.Labels {
					if trial.Labels[label] != value {
						t.Errorf("trial %s has not the suggestion's label %s=%s but %q", trial.Name, label, value, trial.Labels[label])
					}
					if _, ok := trialname.Index(e.Name, e.UID, value, 12); strings.HasSuffix(label, "/parent") && !ok {
						t.Errorf("the parent of trial %s is %q, which is no trial", trial.Name, value)
					}
				}
			}
		})
	}
}

// searchBy has an experiment search by an algorithm what suits it.
func searchBy(e *v1beta1.Experiment, algorithm string) {
	e.Spec.Algorithm.AlgorithmName = algorithm
	set := func(name, value string) {
		e.Spec.Algorithm.AlgorithmSettings = append(e.Spec.Algorithm.AlgorithmSettings, v1beta1.AlgorithmSetting{Name: name, Value: value})
	}
	template := e.Spec.TrialTemplate
	arguments := func(references ...string) {
		var args []any
		template.TrialParameters = nil
		for i, reference := range references {
			name := "p" + strconv.Itoa(i)
			template.TrialParameters = append(template.TrialParameters, v1beta1.TrialParameterSpec{Name: name, Reference: reference})
			args = append(args, "${trialParameters."+name+"}")
		}
		pod := template.TrialSpec.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		pod["containers"].([]any)[0].(map[string]any)["args"] = args
	}
	switch algorithm {
	case "hyperband", "asha", "bohb":
		set("resource_name", "x")
		set("r_l", "9")
		e.Spec.Parameters[0].FeasibleSpace = v1beta1.FeasibleSpace{Min: "1", Max: "9"}
	case "pbt":
		set("suggestion_trial_dir", "/checkpoints")
		set("n_population", "5")
		set("truncation_threshold", "0.4")
		e.Spec.Parameters[0].FeasibleSpace.Step = "1"
	case "enas", "darts":
		e.Spec.Parameters, e.Spec.NasConfig = nil, &v1beta1.NasConfig{
			GraphConfig: v1beta1.GraphConfig{NumLayers: ptr.To(int32(3)), InputSizes: []int32{28, 28, 1}, OutputSizes: []int32{10}},
			Operations: []v1beta1.Operation{{OperationType: "convolution", Parameters: []v1beta1.ParameterSpec{
				{Name: "filter_size", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"3", "5"}}},
			}}},
		}
		arguments("architecture", "nn_config")
		if algorithm == "darts" {
			arguments("algorithm-settings", "search-space", "num-layers")
		}
		return
	}
	e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "y", ParameterType: v1beta1.ParameterTypeDouble,
		FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "10", Step: "0.5"}})
	arguments("x", "y")
}

// score is the program whose loss is the sum of its parameters, or how many
// connections its architecture has.
func score(_ context.Context, pod *corev1.Pod) (string, int32) {
	sum := 0.0
	for _, arg := range pod.Spec.Containers[0].Args {
		var layers [][]int
		if v, err := strconv.ParseFloat(arg, 64); err == nil {
			sum += v
		} else if json.Unmarshal([]byte(arg), &layers) == nil {
			sum += float64(strings.Count(fmt.Sprint(layers), "1"))
		}
	}
	return strconv.FormatFloat(sum, 'g', -1, 64), 0
}
