// SPDX-License-Identifier: Apache-2.0

package searchspace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
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

// TestConstraints keeps, of the 48 points of the space, those that satisfy an
// expression.
func TestConstraints(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		points uint64
		err    string
		reason string
	}{
		"layers <= 3":                            {points: 24, reason: "an int"},
		"lr * 10 + layers > 4":                   {points: 36, reason: "numbers of any type go together"},
		"layers % 2 == 0":                        {points: 24, reason: "ints have a remainder"},
		`optimizer == "adam" or batch == 16`:     {points: 36, reason: "texts, and numbers of a list"},
		`optimizer in ["adam"]`:                  {points: 24, reason: "lists"},
		`max(lr, 0.2) < 0.25 && abs(-1) == 1`:    {points: 32, reason: "functions"},
		`$env["layers"] == 2`:                    {points: 12, reason: "a name that is no identifier is written so"},
		"1 / (layers - 2) > 0":                   {points: 48, reason: "what is divided by 0 is infinite"},
		"layers":                                 {err: "bool", reason: "want true or false"},
		"layers <":                               {err: "parameterConstraints[0]", reason: "no expression"},
		"width < 3":                              {err: "width", reason: "no such parameter"},
		"layers > 9":                             {err: "no point satisfies", reason: "nothing is left"},
		"true":                                   {err: "refers to no parameter", reason: "it says nothing"},
		"layers in 1..1000000000":                {err: "range", reason: "what is hostile is refused"},
		`all([1], layers > #)`:                   {err: "loop", reason: "loops are"},
		"$env[optimizer] == 1":                   {err: "$env", reason: "what it mentions must be known"},
		"layers > " + strings.Repeat("1+", 4096): {err: "bytes", reason: "and what is long"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			space, err := searchspace.Of(&v1beta1.ExperimentSpec{Parameters: parameters(), ParameterConstraints: []string{text}})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%s: Of() = %v, want an error with %q", text, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if size, _ := space.Size(); size != c.points {
				t.Errorf("%s: %d points, want %d", text, size, c.points)
			}
		})
	}
}

// TestConditions checks that a parameter exists where its condition holds, and
// that a constraint says nothing of points without it.
func TestConditions(t *testing.T) {
	t.Parallel()
	p := parameters()
	p[0].When = &v1beta1.ParameterCondition{Parameter: "optimizer", Values: []string{"sgd"}}
	space, err := searchspace.Of(&v1beta1.ExperimentSpec{Parameters: p, ParameterConstraints: []string{"lr < 0.25"}})
	if err != nil {
		t.Fatal(err)
	}
	// 4·2 for layers and batch: with adam once, with sgd for two values of lr.
	if size, finite := space.Size(); !finite || size != 8+16 {
		t.Errorf("%d points, want 24", size)
	}
	for i := range uint64(24) {
		point := space.At(i)
		if has := point.Active("lr"); has != (point.Text("optimizer") == "sgd") || has != (len(searchspace.Assignments(point)) == 4) {
			t.Errorf("point %v has lr: %v", searchspace.Assignments(point), has)
		}
	}
	for _, c := range []struct {
		condition v1beta1.ParameterCondition
		want      string
	}{
		{v1beta1.ParameterCondition{Parameter: "optimizer", Values: []string{"rmsprop"}}, "rmsprop"},
		{v1beta1.ParameterCondition{Parameter: "lr", Values: []string{"0.1"}}, "lr"},
	} {
		p[0].When = &c.condition
		if _, err := searchspace.Of(&v1beta1.ExperimentSpec{Parameters: p}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("condition %v: got %v, want an error with %q", c.condition, err, c.want)
		}
	}
}

func TestInitial(t *testing.T) {
	t.Parallel()
	assign := func(pairs ...string) (out v1beta1.InitialTrial) {
		for i := 0; i < len(pairs); i += 2 {
			out.ParameterAssignments = append(out.ParameterAssignments, v1beta1.ParameterAssignment{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	for _, c := range []struct {
		reason, want string
		trial        v1beta1.InitialTrial
	}{
		{"a point of the space", "", assign("lr", "0.2", "layers", "3", "batch", "16", "optimizer", "sgd")},
		{"a value is missing", `"optimizer" has no value`, assign("lr", "0.2", "layers", "3", "batch", "16")},
		{"a value outside", "9", assign("lr", "0.2", "layers", "9", "batch", "16", "optimizer", "sgd")},
		{"unknown", "width", assign("width", "1")},
		{"a constraint is violated", "parameterConstraints", assign("lr", "0.2", "layers", "5", "batch", "16", "optimizer", "sgd")},
	} {
		spec := &v1beta1.ExperimentSpec{
			Parameters: parameters(), ParameterConstraints: []string{"layers < 5"}, InitialTrials: []v1beta1.InitialTrial{c.trial},
			Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "random"},
		}
		err := searchspace.Check(spec)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "spec.initialTrials[0]")) {
			t.Errorf("%s: Check() = %v, want an error with %q", c.reason, err, c.want)
		}
	}
}

// TestCheckObjectives refuses several objectives where an algorithm has one.
func TestCheckObjectives(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[string]string{"tpe": "", "nsga2": "", "auto": "", "bayesianoptimization": "", "cmaes": "one objective"} {
		err := searchspace.Check(&v1beta1.ExperimentSpec{
			Parameters: parameters(), Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: algorithm},
			Objective: &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss",
				AdditionalObjectives: []v1beta1.AdditionalObjective{{Type: v1beta1.ObjectiveTypeMaximize, MetricName: "speed"}}},
		})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Check() = %v, want an error with %q", algorithm, err, want)
		}
	}
}

// TestCheckForService refuses what a service would not heed.
func TestCheckForService(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*v1beta1.ExperimentSpec){
		"": func(*v1beta1.ExperimentSpec) {},
		"spec.parameters[3].when": func(s *v1beta1.ExperimentSpec) {
			s.Parameters[3].When = &v1beta1.ParameterCondition{Parameter: "layers", Values: []string{"2"}}
		},
		"spec.parameterConstraints": func(s *v1beta1.ExperimentSpec) { s.ParameterConstraints = []string{"layers > 2"} },
		"spec.initialTrials":        func(s *v1beta1.ExperimentSpec) { s.InitialTrials = make([]v1beta1.InitialTrial, 1) },
		"spec.warmStart":            func(s *v1beta1.ExperimentSpec) { s.WarmStart = &v1beta1.WarmStartSpec{} },
		"spec.objective.additionalObjectives": func(s *v1beta1.ExperimentSpec) {
			s.Objective.AdditionalObjectives = make([]v1beta1.AdditionalObjective, 1)
		},
		"spec.objective.constraints": func(s *v1beta1.ExperimentSpec) { s.Objective.Constraints = make([]v1beta1.MetricConstraint, 1) },
		"min":                        func(s *v1beta1.ExperimentSpec) { s.Parameters[0].FeasibleSpace.Min = "x" },
	} {
		spec := &v1beta1.ExperimentSpec{Parameters: parameters(), Objective: &v1beta1.ObjectiveSpec{}}
		change(spec)
		if err := searchspace.CheckForService(spec); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckForService() = %v, want an error with %q", err, want)
		}
	}
}

// FuzzConstraint looks for expressions that panic or do not end.
func FuzzConstraint(f *testing.F) {
	for _, text := range []string{"layers <= 3", `optimizer == "sgd"`, `$env["lr"] > 0 ? batch : 1`, "layers ?? 1", "[1][layers] == 2", "{a: layers}.a > 1", "1 ** layers > 0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		space, err := searchspace.Of(&v1beta1.ExperimentSpec{Parameters: parameters(), ParameterConstraints: []string{text}})
		if err == nil && space == nil {
			t.Error("neither a space nor an error")
		}
	})
}
