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
	space, err := searchspace.Of(&v1beta1.ExperimentSpec{Parameters: parameters()})
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

func nasSpec(algorithm string, settings ...v1beta1.AlgorithmSetting) *v1beta1.ExperimentSpec {
	return &v1beta1.ExperimentSpec{
		Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: algorithm, AlgorithmSettings: settings},
		NasConfig: &v1beta1.NasConfig{
			GraphConfig: v1beta1.GraphConfig{NumLayers: ptr.To(int32(2)), InputSizes: []int32{28, 28, 1}, OutputSizes: []int32{10}},
			Operations: []v1beta1.Operation{{OperationType: "max_pooling", Parameters: []v1beta1.ParameterSpec{
				{Name: "filter_size", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"3", "5"}}},
			}}},
		},
	}
}

// TestArchitectures reads a nasConfig as the space of each algorithm.
func TestArchitectures(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"enas":                  {"architecture", "nn_config"},
		"random":                {"architecture", "nn_config"},
		"regularized-evolution": {"architecture", "nn_config"},
		"auto":                  {"architecture", "nn_config"},
		"tpe":                   {"architecture", "nn_config"},
		"darts":                 {"algorithm-settings", "search-space", "num-layers"},
	}
	for algorithm, names := range want {
		spec := nasSpec(algorithm)
		if err := searchspace.Check(spec); err != nil {
			t.Errorf("%s: %v", algorithm, err)
			continue
		}
		space, err := searchspace.Of(spec)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range searchspace.Assignments(space.At(0)) {
			got = append(got, a.Name)
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("%s assigns (-want +got):\n%s", algorithm, diff)
		}
	}
}

func TestUnusableArchitectures(t *testing.T) {
	t.Parallel()
	change := func(spec *v1beta1.ExperimentSpec, how func(*v1beta1.NasConfig)) *v1beta1.ExperimentSpec {
		how(spec.NasConfig)
		return spec
	}
	for name, c := range map[string]struct {
		spec         *v1beta1.ExperimentSpec
		want, reason string
	}{
		"Sizes":     {change(nasSpec("enas"), func(c *v1beta1.NasConfig) { c.GraphConfig.InputSizes = nil }), "input sizes", "a trial needs to know them"},
		"OneShot":   {change(nasSpec("darts"), func(c *v1beta1.NasConfig) { c.GraphConfig.InputSizes = nil }), "", "Katib's darts does not ask for sizes"},
		"Layers":    {change(nasSpec("enas"), func(c *v1beta1.NasConfig) { c.GraphConfig.NumLayers = nil }), "layers", "so for layers"},
		"Parameter": {change(nasSpec("enas"), func(c *v1beta1.NasConfig) { c.Operations[0].Parameters[0].FeasibleSpace.List = nil }), `"filter_size"`, "the error names the parameter"},
		"Setting":   {nasSpec("darts", v1beta1.AlgorithmSetting{Name: "num_epochs", Value: "0"}), "num_epochs", "and the setting"},
		"Elsewhere": {&v1beta1.ExperimentSpec{Parameters: parameters(), Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "enas"}}, "nasConfig", "an architecture is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := searchspace.Check(c.spec); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: Check() = %v, want an error with %q", c.reason, err, c.want)
			}
		})
	}
}
