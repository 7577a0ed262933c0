// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	manager "diwan.dev/diwan/api/manager/v1beta1"
)

// Parameters as Katib's own tests have them.
var (
	integer  = number("n", manager.ParameterType_INT, "1", "5", "")
	other    = number("m", manager.ParameterType_INT, "9", "10", "")
	real     = number("x", manager.ParameterType_DOUBLE, "0.1", "0.9", "")
	stepped  = number("s", manager.ParameterType_DOUBLE, "1", "5", "1")
	category = list("c", manager.ParameterType_CATEGORICAL, "a", "b")
)

func number(name string, kind manager.ParameterType, low, high, step string) *manager.ParameterSpec {
	return &manager.ParameterSpec{Name: name, ParameterType: kind, FeasibleSpace: &manager.FeasibleSpace{Min: low, Max: high, Step: step}}
}

func list(name string, kind manager.ParameterType, values ...string) *manager.ParameterSpec {
	return &manager.ParameterSpec{Name: name, ParameterType: kind, FeasibleSpace: &manager.FeasibleSpace{List: values}}
}

func log(p *manager.ParameterSpec) *manager.ParameterSpec {
	p.FeasibleSpace.Distribution = manager.Distribution_LOG_UNIFORM
	return p
}

// How Katib's services and we take a request.
const (
	both    = "accepted by both"
	neither = "refused by both"
	more    = "refused by Katib alone"
	later   = "accepted by Katib, where the search then fails"
	listed  = "refused by us alone" // and in docs/compatibility.md
)

// katibCase is a request to validate an experiment.
type katibCase struct {
	settings   string // name=value, separated by semicolons
	parameters []*manager.ParameterSpec
	trials     int32
	want       string // one of the constants
	// says is part of our error. Of a case that is listed it is the first words
	// of the row in docs/compatibility.md.
	says string
}

// TestAcceptsWhatKatibAccepts walks through what Katib's services validate
// (pkg/suggestion/v1beta1 and its tests): each setting of each algorithm, at the
// bounds of its range and beyond them.
func TestAcceptsWhatKatibAccepts(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := []*manager.ParameterSpec{integer, real, category}
	numbers := []*manager.ParameterSpec{integer, other}
	grid := []*manager.ParameterSpec{integer, stepped}
	resource := []*manager.ParameterSpec{real, number("epochs", manager.ParameterType_INT, "1", "9", "")}
	band := "resource_name=epochs;r_l=9;"
	members := "suggestion_trial_dir=/d;n_population=5;truncation_threshold=0.2;"
	seeds := []katibCase{
		{"", plain, 0, both, ""},
		{"random_state=0", plain, 0, both, ""},
		{"random_state= 10 ", plain, 0, both, ""},
		{"random_state=+10", plain, 0, both, ""},
		{"random_state=-1", plain, 0, neither, "random_state"},
		{"random_state=1.5", plain, 0, neither, "random_state"},
		{"random_state=", plain, 0, neither, "random_state"},
		{"random_state=99999999999999999999", plain, 0, later, "random_state"},
		{"unknown_conf=1111", plain, 0, neither, `unknown setting "unknown_conf"`},
	}
	for algorithm, cases := range map[string][]katibCase{
		"invalid": {{"", plain, 0, neither, `unknown algorithm "invalid"`}},
		"random": append(seeds,
			katibCase{"", []*manager.ParameterSpec{number("n", manager.ParameterType_INT, "1", "5", "0.5")}, 0, both, ""},
			katibCase{"", []*manager.ParameterSpec{number("n", manager.ParameterType_INT, "0", "10", "2.5")}, 0, both, ""},
			katibCase{"", []*manager.ParameterSpec{number("n", manager.ParameterType_INT, "1.5", "5", "")}, 0, listed, "non-integral `min` or `max` of an int"},
			katibCase{"", []*manager.ParameterSpec{number("x", manager.ParameterType_DOUBLE, "5", "1", "")}, 0, later, "greater than max"},
			katibCase{"", []*manager.ParameterSpec{number("x", manager.ParameterType_DOUBLE, "1", "1", "")}, 0, both, ""},
			katibCase{"", []*manager.ParameterSpec{number("x", manager.ParameterType_DOUBLE, "1", "5", "7")}, 0, both, ""},
			katibCase{"", []*manager.ParameterSpec{log(number("x", manager.ParameterType_DOUBLE, "0", "5", ""))}, 0, both, ""},
			katibCase{"", []*manager.ParameterSpec{log(number("x", manager.ParameterType_DOUBLE, "-5", "-1", ""))}, 0, later, "max is -1"},
			katibCase{"", []*manager.ParameterSpec{list("d", manager.ParameterType_DISCRETE, "3", "2", "6")}, 0, both, ""},
			katibCase{"", []*manager.ParameterSpec{list("d", manager.ParameterType_DISCRETE, "a", "b")}, 0, listed, "strings in the list of a discrete parameter"},
			katibCase{"", []*manager.ParameterSpec{list("c", manager.ParameterType_CATEGORICAL, "a", "a")}, 0, both, ""},
			katibCase{"", []*manager.ParameterSpec{integer, integer}, 0, later, "used twice"},
			katibCase{"", nil, 0, listed, "`ValidateAlgorithmSettings` for an experiment without parameters"},
		),
		"tpe": append(seeds,
			katibCase{"random_state=10;gamma=0.25;prior_weight=1.0;n_EI_candidates=24", plain, 0, both, ""},
			katibCase{"n_startup_trials=20;n_ei_candidates=10;random_state=71", plain, 0, both, ""},
			katibCase{"gamma=0", plain, 0, neither, "gamma"},
			katibCase{"gamma=1", plain, 0, neither, "gamma"},
			katibCase{"gamma=1.5", plain, 0, neither, "gamma"},
			katibCase{"gamma=nan", plain, 0, neither, "gamma"},
			katibCase{"prior_weight=0", plain, 0, neither, "prior_weight"},
			katibCase{"prior_weight=aaa", plain, 0, neither, "prior_weight"},
			katibCase{"prior_weight=inf", plain, 0, listed, "settings that are infinite or NaN"},
			katibCase{"n_EI_candidates=1", plain, 0, both, ""},
			katibCase{"n_EI_candidates=0", plain, 0, neither, "n_EI_candidates"},
			katibCase{"n_startup_trials=0;n_ei_candidates=0", plain, 0, both, ""},
			katibCase{"n_startup_trials=-1", plain, 0, neither, "n_startup_trials"},
			katibCase{"n_ei_candidates=-1", plain, 0, neither, "n_ei_candidates"},
			katibCase{"n_ei_candidate=-1", plain, 0, neither, "n_ei_candidate"},
			katibCase{"n_EI_candidates=1000000000", plain, 0, listed, "settings that exceed the [limits](#what-katib-does-not-have) on memory or time"},
			katibCase{"n_startup_trials=1_000", plain, 0, listed, "numbers with underscores"},
		),
		"multivariate-tpe": append(seeds,
			katibCase{"n_startup_trials=0;n_ei_candidates=0;random_state=1", plain, 0, both, ""},
			katibCase{"n_startup_trials=-1", plain, 0, neither, "n_startup_trials"},
		),
		"grid": {
			{"random_state=1", grid, 25, both, ""},
			{"random_state=-1", grid, 10, neither, "random_state"},
			{"invalid=invalid", grid, 10, neither, "unknown setting"},
			{"", grid, 26, neither, "25 points"},
			{"", []*manager.ParameterSpec{integer, real}, 5, neither, "no step"},
			{"", []*manager.ParameterSpec{number("n", manager.ParameterType_INT, "1", "5", "0.5")}, 5, more, ""},
			{"", []*manager.ParameterSpec{list("c", manager.ParameterType_CATEGORICAL, "a", "a", "b")}, 3, listed, "duplicate values in a list"},
		},
		"bayesianoptimization": append(seeds,
			katibCase{"base_estimator=GP;n_initial_points=0;acq_func=gp_hedge;acq_optimizer=auto", plain, 0, both, ""},
			katibCase{"base_estimator=RF;acq_func=LCB;acq_optimizer=sampling", plain, 0, both, ""},
			katibCase{"base_estimator=ET;acq_func=EI;acq_optimizer=lbfgs", plain, 0, both, ""},
			katibCase{"base_estimator=GBRT;acq_func=PI", plain, 0, both, ""},
			katibCase{"acq_func=EIps", plain, 0, both, ""},
			katibCase{"acq_func=PIps", plain, 0, both, ""},
			katibCase{"acq_func=LogEI", plain, 0, more, ""},
			katibCase{"base_estimator=unknown estimator", plain, 0, neither, "base_estimator"},
			katibCase{"n_initial_points=-1", plain, 0, neither, "n_initial_points"},
			katibCase{"acq_func=unknown", plain, 0, neither, "acq_func"},
			katibCase{"acq_optimizer=unknown", plain, 0, neither, "acq_optimizer"},
			katibCase{"", []*manager.ParameterSpec{number("n", manager.ParameterType_INT, "1", "5", "0.5")}, 0, both, ""},
		),
		"cmaes": {
			{"restart_strategy=ipop;sigma=0.1;random_state=10", numbers, 20, both, ""},
			{"restart_strategy=ipop;sigma=2;random_state=71", numbers, 20, both, ""},
			{"sigma=1000", numbers, 20, both, ""},
			{"sigma=0", numbers, 20, both, ""},
			{"sigma=-10", numbers, 20, neither, "sigma"},
			{"sigma=nan", numbers, 20, neither, "sigma"},
			{"sigma=inf", numbers, 20, listed, "settings that are infinite or NaN"},
			{"restart_strategy=None", numbers, 20, both, ""},
			{"restart_strategy=none", numbers, 20, both, ""},
			{"restart_strategy=bipop", numbers, 20, both, ""},
			{"restart_strategy=invalid", numbers, 20, neither, "restart_strategy"},
			{"random_state=-20", numbers, 25, listed, "settings that a service ignores"},
			{"invalid=invalid;sigma=0.1", numbers, 25, listed, "settings that a service ignores"},
			{"", append(plain, stepped), 5, both, ""},
			{"sigma=0.2", []*manager.ParameterSpec{integer}, 5, more, ""},
			{"sigma=0.2", []*manager.ParameterSpec{category}, 5, neither, "only categorical parameters"},
		},
		"sobol": {
			{"", numbers, 0, both, ""},
			{"random_state=1", numbers, 0, both, ""},
			{"invalid=invalid", numbers, 0, listed, "settings that a service ignores"},
		},
		"hyperband": {
			{band + "eta=3", resource, 0, both, ""},
			{band, resource, 0, both, ""},
			{"resource_name=epochs;r_l=8.5;eta=2.7", resource, 0, both, ""},
			{"resource_name=epochs;r_l=1", resource, 0, both, ""},
			{"resource_name=epochs;r_l=81", resource, 0, both, ""},
			{"resource_name=m;r_l=4", append(resource, other), 0, both, ""},
			{"resource_name=epochs", resource, 0, neither, "r_l is missing"},
			{"r_l=9", resource, 0, neither, "resource_name is missing"},
			{"resource_name=epochs;r_l=-1", resource, 0, neither, "r_l"},
			{"resource_name=epochs;r_l=0", resource, 0, neither, "r_l"},
			{"resource_name=epochs;r_l=x", resource, 0, neither, "r_l"},
			{"resource_name=--num-epochs;r_l=10", resource, 0, neither, "--num-epochs"},
			{band + "eta=1", resource, 0, neither, "eta"},
			{band + "eta=1.5", resource, 0, more, ""},
			{band + "eta=0", resource, 0, listed, "hyperband's `eta` of 1 or less"},
			{"resource_name=c;r_l=9", append(resource, category), 0, listed, "a hyperband resource that is categorical"},
			{"resource_name=epochs;r_l=9", resource[1:], 0, listed, "a hyperband resource that is categorical"},
			{"resource_name=d;r_l=9", append(resource, list("d", manager.ParameterType_DISCRETE, "1", "2")), 0, listed, "a hyperband resource that is categorical"},
			{band + "s_max=2", resource, 0, listed, "settings that a service ignores"},
		},
		"pbt": {
			{members, grid, 0, both, ""},
			{"suggestion_trial_dir=/d;n_population=5;truncation_threshold=0", grid, 0, both, ""},
			{"suggestion_trial_dir=/d;n_population=5;truncation_threshold=1", grid, 0, both, ""},
			{"suggestion_trial_dir=/d;n_population=5;truncation_threshold=1.1", grid, 0, neither, "truncation_threshold"},
			{"suggestion_trial_dir=/d;n_population=4;truncation_threshold=0.2", grid, 0, neither, "n_population"},
			{"n_population=5;truncation_threshold=0.2", grid, 0, neither, "suggestion_trial_dir is missing"},
			{"suggestion_trial_dir=/d;truncation_threshold=0.2", grid, 0, neither, "n_population is missing"},
			{"suggestion_trial_dir=/d;n_population=5", grid, 0, neither, "truncation_threshold is missing"},
			{members + "resample_probability=0.5", grid, 0, more, ""},
			{members, plain, 0, both, ""},
			{members + "invalid=1", grid, 0, listed, "settings that a service ignores"},
		},
		"enas": {
			{"controller_hidden_size=1;controller_train_steps=1;controller_log_every_steps=1", nil, 0, both, ""},
			{"controller_temperature=None;controller_tanh_const=None;controller_entropy_weight=None;controller_skip_weight=None", nil, 0, both, ""},
			{"controller_temperature=5.0;controller_tanh_const=2.25;controller_baseline_decay=1;controller_learning_rate=1;controller_skip_target=1", nil, 0, both, ""},
			{"controller_hidden_size=1001", nil, 0, listed, "settings that exceed the [limits](#what-katib-does-not-have) on memory or time"},
			{"controller_hidden_size=0", nil, 0, neither, "controller_hidden_size"},
			{"controller_hidden_size=None", nil, 0, neither, "controller_hidden_size"},
			{"controller_train_steps=0", nil, 0, neither, "controller_train_steps"},
			{"controller_log_every_steps=0", nil, 0, neither, "controller_log_every_steps"},
			{"controller_temperature=0", nil, 0, neither, "controller_temperature"},
			{"controller_tanh_const=0", nil, 0, neither, "controller_tanh_const"},
			{"controller_learning_rate=0", nil, 0, neither, "controller_learning_rate"},
			{"controller_baseline_decay=1.1", nil, 0, neither, "controller_baseline_decay"},
			{"controller_skip_target=1.1", nil, 0, neither, "controller_skip_target"},
			{"controller_entropy_weight=0", nil, 0, more, ""},
			{"controller_baseline_decay=0", nil, 0, more, ""},
			{"controller_skip_target=0", nil, 0, more, ""},
			{"controller_temperature=inf", nil, 0, listed, "settings that are infinite or NaN"},
			{"invalid=1", nil, 0, neither, "unknown setting"},
		},
		"darts": {
			{"num_epoch=10;w_lr=0.01;w_lr_min=0.01;alpha_lr=0.01;w_weight_decay=0.25;alpha_weight_decay=0.25;w_momentum=0.9;w_grad_clip=5.0;" +
				"batch_size=100;num_workers=0;init_channels=1;print_step=100;num_nodes=4;stem_multiplier=3", nil, 0, both, ""},
			{"batch_size=None", nil, 0, both, ""},
			{"num_epochs=0", nil, 0, neither, "num_epochs"},
			{"num_epochs=None", nil, 0, neither, "num_epochs"},
			{"w_lr=-0.1", nil, 0, neither, "w_lr"},
			{"alpha_weight_decay=-0.02", nil, 0, neither, "alpha_weight_decay"},
			{"w_momentum=-0.8", nil, 0, neither, "w_momentum"},
			{"batch_size=0", nil, 0, neither, "batch_size"},
			{"print_step=0", nil, 0, neither, "print_step"},
			{"w_grad_clip=inf", nil, 0, listed, "settings that are infinite or NaN"},
		},
	} {
		for _, c := range cases {
			t.Run(algorithm+" "+c.settings, func(t *testing.T) {
				t.Parallel()
				_, err := (&Server{}).ValidateAlgorithmSettings(t.Context(), &manager.ValidateAlgorithmSettingsRequest{Experiment: c.experiment(algorithm)})
				if c.want == both || c.want == more {
					if err != nil {
						t.Errorf("%s, but got %v", c.want, err)
					}
					return
				}
				if status.Code(err) != codes.InvalidArgument {
					t.Fatalf("%s, but got %v", c.want, err)
				}
				if in := err.Error(); c.want != listed && !strings.Contains(in, c.says) {
					t.Errorf("got %v, want an error with %q", err, c.says)
				}
				if c.want == listed && !strings.Contains(string(doc), "\n| "+c.says) {
					t.Errorf("%s (%v), but docs/compatibility.md has no row %q", c.want, err, c.says)
				}
			})
		}
	}
}

// experiment is the request's.
func (c katibCase) experiment(algorithm string) *manager.Experiment {
	spec := &manager.ExperimentSpec{
		Algorithm:      &manager.AlgorithmSpec{AlgorithmName: algorithm},
		ParameterSpecs: &manager.ExperimentSpec_ParameterSpecs{Parameters: c.parameters},
		Objective:      &manager.ObjectiveSpec{Type: manager.ObjectiveType_MAXIMIZE, Goal: 0.9},
		MaxTrialCount:  c.trials, ParallelTrialCount: 9,
	}
	for pair := range strings.SplitSeq(c.settings, ";") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			spec.Algorithm.AlgorithmSettings = append(spec.Algorithm.AlgorithmSettings, &manager.AlgorithmSetting{Name: name, Value: value})
		}
	}
	if algorithm == "enas" || algorithm == "darts" {
		spec.ParameterSpecs, spec.NasConfig = nil, &manager.NasConfig{
			GraphConfig: &manager.GraphConfig{NumLayers: 2, InputSizes: []int32{32, 32, 3}, OutputSizes: []int32{10}},
			Operations: &manager.NasConfig_Operations{Operation: []*manager.Operation{{
				OperationType: "convolution", ParameterSpecs: &manager.Operation_ParameterSpecs{Parameters: []*manager.ParameterSpec{list("filter_size", manager.ParameterType_CATEGORICAL, "3", "5")}},
			}}},
		}
	}
	return &manager.Experiment{Name: "test", Spec: spec}
}

// TestKatibRequest asks for suggestions as Katib's tests of its Optuna service
// do: for every kind of parameter, distribution and step.
func TestKatibRequest(t *testing.T) {
	t.Parallel()
	c := katibCase{parameters: []*manager.ParameterSpec{
		number("param-1", manager.ParameterType_INT, "1", "5", ""),
		list("param-2", manager.ParameterType_CATEGORICAL, "cat1", "cat2", "cat3"),
		list("param-3", manager.ParameterType_DISCRETE, "3", "2", "6"),
		number("param-4", manager.ParameterType_DOUBLE, "1", "5", "1"),
		number("param-5", manager.ParameterType_INT, "1", "5", "2"),
		log(number("param-7", manager.ParameterType_INT, "1", "5", "2")),
		log(number("param-8", manager.ParameterType_INT, "1", "5", "")),
		number("param-9", manager.ParameterType_DOUBLE, "1", "11", "2.5"),
		log(number("param-10", manager.ParameterType_DOUBLE, "1", "11", "2.5")),
		log(number("param-12", manager.ParameterType_DOUBLE, "1", "5", "")),
	}}
	for algorithm, settings := range map[string]string{
		"tpe":              "n_startup_trials=20;n_ei_candidates=10;random_state=71",
		"multivariate-tpe": "n_startup_trials=20;n_ei_candidates=10;random_state=71",
		"cmaes":            "restart_strategy=ipop;sigma=2;random_state=71",
		"random":           "random_state=71",
	} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			c := c
			c.settings = settings
			reply, err := (&Server{}).GetSuggestions(t.Context(), &manager.GetSuggestionsRequest{Experiment: c.experiment(algorithm), CurrentRequestNumber: 2})
			if err != nil || len(reply.GetParameterAssignments()) != 2 {
				t.Errorf("got %v, %v; want two suggestions", reply, err)
			}
		})
	}
}

// TestMissingFields names what a request lacks by its place in the message,
// beside what is wrong with its settings.
func TestMissingFields(t *testing.T) {
	t.Parallel()
	complete := func() *manager.Experiment {
		return katibCase{parameters: []*manager.ParameterSpec{number("x", manager.ParameterType_DOUBLE, "0", "1", "")}}.experiment("random")
	}
	for name, c := range map[string]struct {
		change func(*manager.Experiment) *manager.Experiment
		pinned string
		want   []string // parts of the error, none for none
	}{
		"Complete":   {change: func(e *manager.Experiment) *manager.Experiment { return e }},
		"Experiment": {change: func(*manager.Experiment) *manager.Experiment { return nil }, want: []string{"experiment is missing"}},
		"Spec":       {change: func(e *manager.Experiment) *manager.Experiment { e.Spec = nil; return e }, want: []string{"experiment.spec is missing"}},
		"Algorithm":  {change: func(e *manager.Experiment) *manager.Experiment { e.Spec.Algorithm = nil; return e }, want: []string{"experiment.spec.algorithm is missing"}},
		"Pinned":     {change: func(e *manager.Experiment) *manager.Experiment { e.Spec.Algorithm = nil; return e }, pinned: "tpe"},
		"Name":       {change: func(e *manager.Experiment) *manager.Experiment { e.Spec.Algorithm.AlgorithmName = ""; return e }, want: []string{"experiment.spec.algorithm.algorithm_name is missing"}},
		"Parameters": {change: func(e *manager.Experiment) *manager.Experiment { e.Spec.ParameterSpecs = nil; return e }, want: []string{"experiment.spec.parameter_specs.parameters is empty"}},
		"Misspelt": {change: func(e *manager.Experiment) *manager.Experiment {
			e.Spec.ParameterSpecs, e.Spec.Algorithm.AlgorithmName = nil, "randon"
			return e
		}, want: []string{`unknown algorithm "randon"`, "parameters is empty"}},
		"Setting": {change: func(e *manager.Experiment) *manager.Experiment {
			e.Spec.ParameterSpecs = nil
			e.Spec.Algorithm.AlgorithmSettings = []*manager.AlgorithmSetting{{Name: "random_sate", Value: "1"}}
			return e
		}, want: []string{`unknown setting "random_sate"`}},
		"Value": {change: func(e *manager.Experiment) *manager.Experiment {
			e.Spec.ParameterSpecs.Parameters[0].FeasibleSpace.Min = "low"
			e.Spec.Algorithm.AlgorithmSettings = []*manager.AlgorithmSetting{{Name: "random_state", Value: "-1"}}
			return e
		}, want: []string{`random_state is "-1"`, `min is "low"`}},
		"Architecture": {change: func(e *manager.Experiment) *manager.Experiment {
			e.Spec.Algorithm.AlgorithmName, e.Spec.ParameterSpecs = "enas", nil
			return e
		}, want: []string{"experiment.spec.nas_config is missing"}},
		"Fields": {change: func(e *manager.Experiment) *manager.Experiment {
			e.Spec.ParameterSpecs.Parameters = append(e.Spec.ParameterSpecs.Parameters,
				&manager.ParameterSpec{}, number("n", manager.ParameterType_INT, "", "3", ""), &manager.ParameterSpec{Name: "c", ParameterType: manager.ParameterType_CATEGORICAL}, nil)
			return e
		}, want: []string{
			"parameters[1].name is missing", "parameters[1].parameter_type is UNKNOWN_TYPE: want DOUBLE", "parameters[2].feasible_space.min is missing",
			"parameters[3].feasible_space.list is missing", "parameters[4].name is missing",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := &Server{Algorithm: c.pinned}, c.change(complete())
			_, validated := s.ValidateAlgorithmSettings(t.Context(), &manager.ValidateAlgorithmSettingsRequest{Experiment: e})
			_, suggested := s.GetSuggestions(t.Context(), &manager.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: 1})
			for call, err := range map[string]error{"ValidateAlgorithmSettings": validated, "GetSuggestions": suggested} {
				if (err == nil) != (len(c.want) == 0) {
					t.Errorf("%s: got %v, want an error with %q", call, err, c.want)
				}
				for _, want := range c.want {
					if !strings.Contains(fmt.Sprint(err), want) {
						t.Errorf("%s: got %v, want an error with %q", call, err, want)
					}
				}
			}
		})
	}
}
