// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/dbmanager"
	"diwan.dev/diwan/internal/tuning/suggestion"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
	"diwan.dev/diwan/optimize"
)

// serve runs something on loopback and returns its address.
func serve(t *testing.T, run func(context.Context, ...net.Listener) error) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return l.Addr().String()
}

// search is an experiment with an algorithm of the library, whatever it needs.
func search(name string) *kubeflow.Experiment {
	e := &kubeflow.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid"}}
	e.Spec = kubeflow.ExperimentSpec{
		Objective:          &kubeflow.ObjectiveSpec{Type: kubeflow.ObjectiveTypeMinimize, ObjectiveMetricName: "loss", Goal: ptr.To(0.0)},
		MaxTrialCount:      ptr.To[int32](30),
		ParallelTrialCount: ptr.To[int32](3),
		Algorithm:          &kubeflow.AlgorithmSpec{AlgorithmName: name, AlgorithmSettings: settingsOf(name)},
		Parameters: []kubeflow.ParameterSpec{
			{Name: "rate", ParameterType: kubeflow.ParameterTypeDouble, FeasibleSpace: kubeflow.FeasibleSpace{Min: "0.01", Max: "1", Step: "0.01", Distribution: kubeflow.DistributionLogUniform}},
			{Name: "units", ParameterType: kubeflow.ParameterTypeInt, FeasibleSpace: kubeflow.FeasibleSpace{Min: "1", Max: "20"}},
			{Name: "optimizer", ParameterType: kubeflow.ParameterTypeCategorical, FeasibleSpace: kubeflow.FeasibleSpace{List: []string{"sgd", "adam"}}},
		},
	}
	if name == "sobol" || name == "pbt" {
		e.Spec.Parameters[0].FeasibleSpace.Distribution = kubeflow.DistributionUniform
	}
	if name == "cmaes" {
		e.Spec.Parameters = e.Spec.Parameters[:2]
	}
	if name == "enas" || name == "darts" {
		e.Spec.Parameters, e.Spec.NasConfig = nil, &kubeflow.NasConfig{
			GraphConfig: kubeflow.GraphConfig{NumLayers: ptr.To[int32](3), InputSizes: []int32{28, 28, 1}, OutputSizes: []int32{10}},
			Operations: []kubeflow.Operation{{OperationType: "convolution", Parameters: []kubeflow.ParameterSpec{
				{Name: "filter_size", ParameterType: kubeflow.ParameterTypeCategorical, FeasibleSpace: kubeflow.FeasibleSpace{List: []string{"3", "5"}}},
			}}},
		}
	}
	return e
}

// settingsOf are what an algorithm cannot do without, and the seed.
func settingsOf(name string) []kubeflow.AlgorithmSetting {
	var settings []kubeflow.AlgorithmSetting
	switch name {
	case "hyperband", "asha", "bohb":
		settings = []kubeflow.AlgorithmSetting{{Name: "resource_name", Value: "units"}, {Name: "r_l", Value: "20"}}
	case "enas":
		settings = []kubeflow.AlgorithmSetting{{Name: "controller_hidden_size", Value: "8"}, {Name: "controller_train_steps", Value: "3"}}
	case "pbt":
		settings = []kubeflow.AlgorithmSetting{{Name: "suggestion_trial_dir", Value: "/checkpoints"}, {Name: "n_population", Value: "5"}, {Name: "truncation_threshold", Value: "0.2"}}
	}
	for _, a := range optimize.Known() {
		for _, s := range a.Settings {
			if a.Name == name && s == "random_state" {
				settings = append(settings, kubeflow.AlgorithmSetting{Name: s, Value: "7"})
			}
		}
	}
	return settings
}

// end lets a trial end in one of the ways.
func end(t *kubeflow.Trial, chance *rand.Rand) {
	loss := strconv.FormatFloat(chance.Float64(), 'g', 4, 64)
	condition := []kubeflow.ConditionType{kubeflow.ConditionSucceeded, kubeflow.ConditionSucceeded, kubeflow.ConditionFailed, kubeflow.ConditionEarlyStopped}[chance.IntN(4)]
	t.Status.Conditions.Set(metav1.Now(), condition, corev1.ConditionTrue, "", "")
	t.Status.Observation = &kubeflow.Observation{Metrics: []kubeflow.Metric{{Name: "loss", Min: loss, Max: loss, Latest: loss}}}
}

// TestServedSearchIsThatOfTheLibrary has the same search made in process and by
// a service, with each algorithm: the suggestions are the same.
func TestServedSearchIsThatOfTheLibrary(t *testing.T) {
	t.Parallel()
	address := serve(t, (&Server{}).Serve)
	client := algorithm.Client{Timeout: time.Minute}
	for _, a := range optimize.Known() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(1, 2))
			e := search(a.Name)
			if err := client.Validate(t.Context(), address, algorithm.Experiment(e, nil)); err != nil {
				t.Fatal(err)
			}
			var trials []*kubeflow.Trial // by index
			for len(trials) < 24 {
				more := 1 + chance.IntN(4)
				want, _, err := suggestion.Answer(t.Context(), e, trials, more)
				if err != nil {
					t.Fatal(err)
				}
				shuffled := append([]*kubeflow.Trial{}, trials...)
				chance.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				reply, err := client.Suggest(t.Context(), address, &manager.GetSuggestionsRequest{
					Experiment: algorithm.Experiment(e, nil), Trials: algorithm.Trials(shuffled),
					CurrentRequestNumber: int32(more), TotalRequestNumber: int32(len(trials) + more),
				})
				if err != nil {
					t.Fatal(err)
				}
				name := func(i int) string { return want[i].Name }
				got, err := algorithm.Assignments(e, reply, more, name, func(string) bool { return false })
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if want[i].Labels == nil {
						want[i].Labels = map[string]string{}
					}
					want[i].Labels[suggestion.LabelIndex] = strconv.Itoa(len(trials) + i)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("suggestions from %d on: -in process, +served:\n%s", len(trials), diff)
				}
				if len(got) == 0 {
					return // there is nothing more to suggest
				}
				for _, a := range got {
					trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}
					trial.Spec.Objective, trial.Spec.ParameterAssignments, trial.Spec.Labels = e.Spec.Objective, a.ParameterAssignments, a.Labels
					trials = append(trials, trial)
				}
				for _, trial := range trials {
					if !trial.IsCompleted() && chance.IntN(3) > 0 {
						end(trial, chance)
					}
				}
			}
		})
	}
}

// TestKatibsController asks as Katib's own controller does: with names of its
// own, without the experiment's UID, and with the settings that came back.
func TestKatibsController(t *testing.T) {
	t.Parallel()
	conn := dial(t, serve(t, (&Server{}).Serve))
	client := manager.NewSuggestionClient(conn)
	e := search("tpe")
	e.Spec.Algorithm.AlgorithmSettings = nil
	var trials []*kubeflow.Trial
	var settings []kubeflow.AlgorithmSetting
	seen := map[string]bool{}
	for len(trials) < 20 {
		reply, err := client.GetSuggestions(t.Context(), &manager.GetSuggestionsRequest{
			Experiment: algorithm.Experiment(e, settings), Trials: algorithm.Trials(trials),
			CurrentRequestNumber: 2, TotalRequestNumber: int32(len(trials) + 2),
		})
		if err != nil {
			t.Fatal(err)
		}
		settings = algorithm.Merge(settings, algorithm.SettingsOf(reply.GetAlgorithm()))
		if len(settings) != 1 || settings[0].Name != "random_state" {
			t.Fatalf("settings %v came back, want the seed", settings)
		}
		for _, p := range reply.GetParameterAssignments() {
			trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e-%d", len(trials))}}
			trial.Spec.Objective, trial.Spec.Labels = e.Spec.Objective, p.GetLabels()
			trial.Spec.ParameterAssignments = algorithm.AssignmentsOf(p.GetAssignments())
			end(trial, rand.New(rand.NewPCG(uint64(len(trials)), 1)))
			if text := fmt.Sprint(trial.Spec.ParameterAssignments); seen[text] {
				t.Errorf("%s was suggested twice", text)
			} else {
				seen[text] = true
			}
			trials = append(trials, trial)
		}
	}
	health := grpc_health_v1.NewHealthClient(conn)
	for _, name := range []string{"", "manager.v1beta1.Suggestion"} {
		if got, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name}); err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("Katib's probe of %q: %v, %v", name, got, err)
		}
	}
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestRefusals asks for what cannot be searched.
func TestRefusals(t *testing.T) {
	t.Parallel()
	client := manager.NewSuggestionClient(dial(t, serve(t, (&Server{}).Serve)))
	ask := func(change func(*kubeflow.Experiment), more, total int32) *manager.GetSuggestionsRequest {
		e := search("random")
		change(e)
		return &manager.GetSuggestionsRequest{Experiment: algorithm.Experiment(e, nil), CurrentRequestNumber: more, TotalRequestNumber: total}
	}
	same := func(*kubeflow.Experiment) {}
	for name, c := range map[string]struct {
		reason string
		ask    *manager.GetSuggestionsRequest
		want   string
	}{
		"Nothing":   {"an empty request", &manager.GetSuggestionsRequest{}, "experiment is missing"},
		"Algorithm": {"one that nobody has", ask(func(e *kubeflow.Experiment) { e.Spec.Algorithm.AlgorithmName = "magic" }, 1, 1), "magic"},
		"Space":     {"a space without values", ask(func(e *kubeflow.Experiment) { e.Spec.Parameters[2].FeasibleSpace.List = nil }, 1, 1), "optimizer"},
		"Negative":  {"fewer than none", ask(same, -1, 1), "current_request_number"},
		"Huge":      {"more than memory holds", ask(same, 1<<30, 1<<30), "current_request_number"},
		"Past":      {"a history that nobody has", ask(same, 1, 1<<30), "total_request_number"},
	} {
		_, err := client.GetSuggestions(t.Context(), c.ask)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: got %v, want INVALID_ARGUMENT with %q", name, c.reason, err, c.want)
		}
	}
}

// anyone lets everyone read everything.
type anyone struct{}

func (anyone) Trial(_ context.Context, name string, _ dbmanager.Verb) (observation.Trial, error) {
	return observation.Trial{Name: name}, nil
}

// TestEarlyStopping asks for Katib's rule, from metrics that a DBManager has.
func TestEarlyStopping(t *testing.T) {
	t.Parallel()
	store := memory.New()
	metrics := serve(t, dbmanager.New(dbmanager.DefaultConfig(store, anyone{})).Serve)
	client := algorithm.Client{Timeout: time.Minute}
	address := serve(t, (&Server{}).Serve)
	e := search("random")
	e.Spec.EarlyStopping = &kubeflow.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: []kubeflow.EarlyStoppingSetting{
		{Name: "min_trials_required", Value: "2"}, {Name: "start_step", Value: "2"},
	}}
	if err := client.ValidateStopping(t.Context(), address, e.Spec.EarlyStopping); err != nil {
		t.Fatal(err)
	}
	if err := client.ValidateStopping(t.Context(), address, &kubeflow.EarlyStoppingSpec{AlgorithmName: "guess"}); err == nil {
		t.Error("a rule that nobody has is accepted")
	}
	var trials []*kubeflow.Trial
	for i, values := range []string{"4 2", "2 0", "0 0"} {
		trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("t", i)}}
		trial.Status.Conditions.Set(metav1.Now(), kubeflow.ConditionSucceeded, corev1.ConditionTrue, "", "")
		trials = append(trials, trial)
		batch := observation.Batch{Source: "s", To: 10}
		for step, v := range strings.Fields(values) {
			batch.Points = append(batch.Points, observation.Point{Time: time.Unix(int64(step), 0), Metric: "loss", Value: v})
		}
		if err := store.Append(t.Context(), observation.Trial{Name: trial.Name}, batch); err != nil {
			t.Fatal(err)
		}
	}
	request := &manager.GetEarlyStoppingRulesRequest{Experiment: algorithm.Experiment(e, nil), Trials: algorithm.Trials(trials), DbManagerAddress: metrics}
	rules, err := client.Rules(t.Context(), address, request)
	if err != nil {
		t.Fatal(err)
	}
	want := []kubeflow.EarlyStoppingRule{{Name: "loss", Value: "1", Comparison: kubeflow.ComparisonTypeGreater, StartStep: 2}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("rules: -the median of the averages 3, 1 and 0, +got:\n%s", diff)
	}
	for name, c := range map[string]struct {
		server  Server
		request *kubeflow.EarlyStoppingSpec
		want    []kubeflow.EarlyStoppingRule
	}{
		"None":      {Server{}, nil, nil},
		"Pinned":    {Server{EarlyStopping: e.Spec.EarlyStopping}, nil, want},
		"OtherName": {Server{EarlyStopping: e.Spec.EarlyStopping}, &kubeflow.EarlyStoppingSpec{AlgorithmName: "mine"}, want},
		"OwnSetting": {Server{EarlyStopping: e.Spec.EarlyStopping}, &kubeflow.EarlyStoppingSpec{AlgorithmName: "mine", AlgorithmSettings: []kubeflow.EarlyStoppingSetting{
			{Name: "min_trials_required", Value: "4"},
		}}, nil}, // of three trials
	} {
		e := e.DeepCopy()
		e.Spec.EarlyStopping = c.request
		request := &manager.GetEarlyStoppingRulesRequest{Experiment: algorithm.Experiment(e, nil), Trials: algorithm.Trials(trials), DbManagerAddress: metrics}
		reply, err := c.server.GetEarlyStoppingRules(t.Context(), request)
		if diff := cmp.Diff(c.want, algorithm.RulesOf(reply.GetEarlyStoppingRules())); err != nil || diff != "" {
			t.Errorf("%s: %v, rules: -want, +got:\n%s", name, err, diff)
		}
		if c.request == nil {
			continue
		}
		if _, err := c.server.ValidateEarlyStoppingSettings(t.Context(), &manager.ValidateEarlyStoppingSettingsRequest{EarlyStopping: algorithm.EarlyStopping(c.request)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	request.DbManagerAddress = "127.0.0.1:1"
	if _, err := client.Rules(t.Context(), address, request); err == nil {
		t.Error("without a DB manager there are rules")
	}
}

// TestKatibEarlyStopping walks through what Katib's tests of medianstop ask.
func TestKatibEarlyStopping(t *testing.T) {
	t.Parallel()
	s := &Server{}
	for settings, valid := range map[string]bool{
		"medianstop;min_trials_required=2;start_step=5": true,
		"medianstop;min_trials_required= 2 ":            true,
		"medianstop;start_step=+5":                      true,
		"medianstop":                                    true,
		"unknown":                                       false,
		"":                                              false,
		"medianstop;unknown_conf=100":                   false,
		"medianstop;min_trials_required=0":              false,
		"medianstop;start_step=0":                       false,
		"medianstop;start_step=1.5":                     false,
	} {
		name, rest, _ := strings.Cut(settings, ";")
		spec := &manager.EarlyStoppingSpec{AlgorithmName: name}
		for pair := range strings.SplitSeq(rest, ";") {
			if name, value, ok := strings.Cut(pair, "="); ok {
				spec.AlgorithmSettings = append(spec.AlgorithmSettings, &manager.EarlyStoppingSetting{Name: name, Value: value})
			}
		}
		_, err := s.ValidateEarlyStoppingSettings(t.Context(), &manager.ValidateEarlyStoppingSettingsRequest{EarlyStopping: spec})
		if (err == nil) != valid || err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: got %v, want valid: %t", settings, err, valid)
		}
	}
	// Its experiment is empty, its trials have not begun and its DB manager is away.
	reply, err := s.GetEarlyStoppingRules(t.Context(), &manager.GetEarlyStoppingRulesRequest{
		Experiment: &manager.Experiment{Name: "test"}, Trials: []*manager.Trial{{Name: "test-asfjh"}, {Name: "test-234hs"}}, DbManagerAddress: "katib-db-manager.kubeflow:6789",
	})
	if err != nil || len(reply.GetEarlyStoppingRules()) > 0 {
		t.Errorf("rules for an experiment that names none: %v, %v", reply, err)
	}
}

// FuzzSuggestions checks that no request harms the server, and that what it
// answers is in the space.
func FuzzSuggestions(f *testing.F) {
	for _, name := range []string{"random", "grid", "tpe", "hyperband", "enas"} {
		e := search(name)
		made, _, err := suggestion.Answer(context.Background(), e, nil, 2)
		if err != nil {
			f.Fatal(err)
		}
		var trials []*kubeflow.Trial
		for _, a := range made {
			trial := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}
			trial.Spec.Objective, trial.Spec.ParameterAssignments, trial.Spec.Labels = e.Spec.Objective, a.ParameterAssignments, a.Labels
			end(trial, rand.New(rand.NewPCG(1, 1)))
			trials = append(trials, trial)
		}
		text, err := proto.Marshal(&manager.GetSuggestionsRequest{
			Experiment: algorithm.Experiment(e, nil), Trials: algorithm.Trials(trials), CurrentRequestNumber: 1, TotalRequestNumber: 3,
		})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &manager.GetSuggestionsRequest{}
		if proto.Unmarshal(text, r) != nil {
			return
		}
		r.CurrentRequestNumber, r.TotalRequestNumber = min(r.CurrentRequestNumber, 3), min(r.TotalRequestNumber, 20)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		reply, err := (&Server{}).GetSuggestions(ctx, r)
		if err != nil {
			if c := status.Code(err); c != codes.InvalidArgument && c != codes.DeadlineExceeded {
				t.Errorf("%v: %v", r, err)
			}
			return
		}
		e := algorithm.ExperimentOf(r.GetExperiment())
		name := func(i int) string { return strconv.Itoa(i) }
		if _, err := algorithm.Assignments(e, reply, int(r.GetCurrentRequestNumber()), name, func(string) bool { return false }); err != nil {
			t.Errorf("%v: answered %v: %v", r, reply, err)
		}
	})
}
