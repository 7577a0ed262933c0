// SPDX-License-Identifier: Apache-2.0

package searchspace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/searchspace"
)

func parameters() []v1beta1.ParameterSpec {
	return []v1beta1.ParameterSpec{
		{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0.1", Max: "0.3", Step: "0.1"}},
		{Name: "layers", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "2", Max: "5"}},
		{Name: "batch", ParameterType: v1beta1.ParameterTypeDiscrete, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"16", "32"}}},
		{Name: "optimizer", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"sgd", "adam"}}},
	}
}

func TestPointsAndAssignmentsAreInverse(t *testing.T) {
	t.Parallel()
	space, err := searchspace.Of(parameters())
	if err != nil {
		t.Fatal(err)
	}
	if size, finite := space.Size(); !finite || size != 3*4*2*2 {
		t.Fatalf("Size() = %d, %v; want 48 points", size, finite)
	}
	for i := range uint64(48) {
		assignments := searchspace.Assignments(space.At(i))
		point, err := searchspace.Point(space, assignments)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(assignments, searchspace.Assignments(point)); diff != "" {
			t.Errorf("point %d: -want, +got:\n%s", i, diff)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	spec := func(algorithm string, maxTrials int32, change func([]v1beta1.ParameterSpec)) *v1beta1.ExperimentSpec {
		p := parameters()
		if change != nil {
			change(p)
		}
		return &v1beta1.ExperimentSpec{
			Parameters: p, MaxTrialCount: ptr.To(maxTrials),
			Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: algorithm},
		}
	}
	for name, c := range map[string]struct {
		spec   *v1beta1.ExperimentSpec
		want   string
		reason string
	}{
		"Good":                 {spec("random", 100, nil), "", "random repeats nothing, but may be asked for more than there is"},
		"GridFits":             {spec("grid", 48, nil), "", "as many trials as points"},
		"GridTooFew":           {spec("grid", 49, nil), "48 points", "Katib refuses a grid with fewer points than trials"},
		"Unknown":              {spec("magic", 1, nil), "magic", "no such algorithm"},
		"ListWithDistribution": {spec("random", 1, func(p []v1beta1.ParameterSpec) { p[3].FeasibleSpace.Distribution = "logUniform" }), "", "Katib does not look at it"},
		"UnknownDistribution":  {spec("random", 1, func(p []v1beta1.ParameterSpec) { p[1].FeasibleSpace.Distribution = "unknown" }), "", "Katib takes it for uniform"},
		"Later":                {spec("tpe", 1, nil), "not yet available", "one of Katib's that is yet to come"},
		"BadNumber":            {spec("random", 1, func(p []v1beta1.ParameterSpec) { p[0].FeasibleSpace.Min = "x" }), `"lr"`, "the error names the parameter"},
		"None":                 {&v1beta1.ExperimentSpec{}, "spec.algorithm", "an experiment that passed by admission"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := searchspace.Check(c.spec)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: Check() = %v, want an error with %q", c.reason, err, c.want)
			}
		})
	}
}
