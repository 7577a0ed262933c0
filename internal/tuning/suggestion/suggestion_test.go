// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/internal/tuning/trialname"
	"diwan.dev/diwan/optimize"
)

// search is an experiment and its suggestion.
func search(algorithm string) (*v1beta1.Experiment, *v1beta1.Suggestion) {
	e := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid of e"}}
	e.Spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"}
	e.Spec.Parameters = []v1beta1.ParameterSpec{
		{Name: "units", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "20"}},
		{Name: "optimizer", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"sgd", "adam"}}},
	}
	s := &v1beta1.Suggestion{}
	s.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: algorithm}
	s.Status.AlgorithmSettings = seedFor(e.UID, algorithm, nil)
	return e, s
}

func nameOf(index int) string { return trialname.Of("e", "uid of e", index) }

// noTrial is a cache without trials.
func noTrial(string) *v1beta1.Trial { return nil }

// settingsOf are what an algorithm cannot do without.
func settingsOf(algorithm string) []v1beta1.AlgorithmSetting {
	switch algorithm {
	case "hyperband", "asha", "bohb":
		return []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: "units"}, {Name: "r_l", Value: "20"}}
	case "enas":
		return []v1beta1.AlgorithmSetting{{Name: "controller_hidden_size", Value: "8"}, {Name: "controller_train_steps", Value: "3"}}
	case "pbt":
		return []v1beta1.AlgorithmSetting{{Name: "suggestion_trial_dir", Value: "/checkpoints"}, {Name: "n_population", Value: "5"}, {Name: "truncation_threshold", Value: "0.2"}}
	}
	return nil
}

// searchBy is search with an algorithm of the library, whatever it needs.
func searchBy(algorithm string) (*v1beta1.Experiment, *v1beta1.Suggestion) {
	e, s := search(algorithm)
	s.Spec.Algorithm.AlgorithmSettings = settingsOf(algorithm)
	e.Spec.Algorithm = s.Spec.Algorithm
	switch algorithm {
	case "cmaes":
		e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "rate", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"}})
	case "enas", "darts":
		layers := int32(3)
		e.Spec.Parameters, e.Spec.NasConfig = nil, &v1beta1.NasConfig{
			GraphConfig: v1beta1.GraphConfig{NumLayers: &layers, InputSizes: []int32{28, 28, 1}, OutputSizes: []int32{10}},
			Operations: []v1beta1.Operation{{OperationType: "convolution", Parameters: []v1beta1.ParameterSpec{
				{Name: "filter_size", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"3", "5"}}},
			}}},
		}
	}
	return e, s
}

// end is the trial of an assignment after it ended in one of the ways.
func end(e *v1beta1.Experiment, a v1beta1.TrialAssignment, condition v1beta1.ConditionType, loss string) *v1beta1.Trial {
	trial := &v1beta1.Trial{Spec: v1beta1.TrialSpec{Objective: e.Spec.Objective, ParameterAssignments: a.ParameterAssignments, Labels: a.Labels}}
	if condition != "" {
		trial.Status.Conditions.Set(metav1.Time{}, condition, corev1.ConditionTrue, "", "")
	}
	if loss != "" {
		trial.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: loss, Max: loss, Latest: loss}}}
	}
	return trial
}

// TestResumedSearchGoesOnAsIfNothingHadHappened has two sessions make the same
// search. One of them dies now and then, and knows only what is stored.
func TestResumedSearchGoesOnAsIfNothingHadHappened(t *testing.T) {
	t.Parallel()
	for _, algorithm := range optimize.Known() {
		t.Run(algorithm.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range 3 {
				resumed(t, algorithm.Name, seed, seed)
			}
		})
	}
}

// resumed begins with so many trials that the user asks for.
func resumed(t *testing.T, algorithm string, seed, initial int) {
	t.Helper()
	chance := rand.New(rand.NewPCG(1, uint64(seed)))
	e, alive := searchBy(algorithm)
	space, err := searchspace.Of(&e.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for range initial {
		u := make([]float64, space.Len())
		for i := range u {
			u[i] = chance.Float64()
		}
		e.Spec.InitialTrials = append(e.Spec.InitialTrials, v1beta1.InitialTrial{ParameterAssignments: searchspace.Assignments(space.Quantile(u))})
	}
	_, dying := searchBy(algorithm)
	trials := map[string]*v1beta1.Trial{}
	find := func(name string) *v1beta1.Trial { return trials[name] }
	x, err := resume(e, alive, find, nil)
	if err != nil {
		t.Fatal(err)
	}
	for made := int32(0); made < 30; {
		y, err := resume(e, dying, find, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range []*session{x, y} {
			if err := each.learn(find); err != nil {
				t.Fatal(err)
			}
		}
		more := min(30, made+1+chance.Int32N(5))
		err = x.extend(t.Context(), &alive.Status, more, nil)
		if again := y.extend(t.Context(), &dying.Status, more, nil); !errors.Is(again, err) {
			t.Fatalf("one ends with %v, the other with %v", err, again)
		}
		count := int(alive.Status.SuggestionCount - made)
		fresh, same := last(alive.Status.Suggestions, count), last(dying.Status.Suggestions, count)
		if diff := cmp.Diff(fresh, same); diff != "" {
			t.Fatalf("suggestions from %d on: (-alive, +dying)\n%s", made, diff)
		}
		if made == 0 && count >= initial {
			for i, asked := range e.Spec.InitialTrials {
				if diff := cmp.Diff(asked.ParameterAssignments, fresh[i].ParameterAssignments); diff != "" {
					t.Errorf("the search does not begin with the trial asked for (-want +got):\n%s", diff)
				}
			}
		}
		if made += int32(count); err != nil {
			return // there is nothing more to suggest
		}
		for _, a := range fresh {
			trials[a.Name] = end(e, a, "", "")
		}
		for _, a := range alive.Status.Suggestions {
			if trials[a.Name].IsCompleted() || chance.IntN(3) == 0 {
				continue
			}
			condition := []v1beta1.ConditionType{v1beta1.ConditionSucceeded, v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionEarlyStopped}[chance.IntN(4)]
			trials[a.Name] = end(e, a, condition, strconv.FormatFloat(chance.Float64(), 'g', 4, 64))
		}
		dying.Status.Suggestions = prune(dying.Status.Suggestions, 5, func(name string) bool { return trials[name].IsCompleted() })
	}
}

// TestHistoryOf checks what is learned from an earlier experiment: its own trials
// that have ended.
func TestHistoryOf(t *testing.T) {
	t.Parallel()
	e, _ := search("random")
	trial := func(owner *v1beta1.Experiment, units string, condition v1beta1.ConditionType, loss string) v1beta1.Trial {
		made := end(owner, v1beta1.TrialAssignment{ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "units", Value: units}, {Name: "optimizer", Value: "sgd"}}}, condition, loss)
		made.Name = "trial-" + units
		made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind(v1beta1.ExperimentKind))}
		return *made
	}
	other := e.DeepCopy()
	other.UID = "other"
	h, err := historyOf(e, []v1beta1.Trial{
		trial(e, "4", v1beta1.ConditionFailed, ""), trial(e, "3", v1beta1.ConditionSucceeded, "0.5"), trial(e, "5", "", ""),
		trial(e, "1000", v1beta1.ConditionSucceeded, "1"), trial(other, "6", v1beta1.ConditionSucceeded, "0"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.Len() != 2 || h.Trial(0).Value() != 0.5 || h.Trial(0).Point.Int("units") != 3 || h.Trial(1).State != optimize.Failed {
		t.Errorf("got %d trials, the first %+v; want that of 3 units, and the failed one", h.Len(), h.Trial(0))
	}
	if _, err := resume(other, &v1beta1.Suggestion{Spec: v1beta1.SuggestionSpec{Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "tpe"}}}, noTrial, []*optimize.History{h}); err != nil {
		t.Error(err)
	}
}

func last(list []v1beta1.TrialAssignment, n int) []v1beta1.TrialAssignment {
	return append([]v1beta1.TrialAssignment{}, list[len(list)-n:]...)
}

// TestLabelsTravel checks that a sampler finds its labels in the history, with
// parents by index, and that trials bear them, with parents by name.
func TestLabelsTravel(t *testing.T) {
	t.Parallel()
	e, s := search("random")
	s.Status.SuggestionCount = 2
	trials := map[string]*v1beta1.Trial{
		nameOf(0): {Spec: v1beta1.TrialSpec{ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "units", Value: "3"}, {Name: "optimizer", Value: "sgd"}}}},
	}
	s.Status.Suggestions = []v1beta1.TrialAssignment{{}, {
		Name:                 nameOf(1),
		ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "units", Value: "4"}, {Name: "optimizer", Value: "sgd"}},
		Labels:               map[string]string{"rung": "7", "a/parent": nameOf(0), "b/parent": "nobody"},
	}}
	s.Status.Suggestions[0].Name = nameOf(0)
	x, err := resume(e, s, func(name string) *v1beta1.Trial { return trials[name] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	labels := x.history.Trial(1).Point.Labels()
	if diff := cmp.Diff(map[string]string{"rung": "7", "a/parent": "0"}, labels); diff != "" {
		t.Errorf("in the history (-want +got):\n%s", diff)
	}
	want := map[string]string{"rung": "7", "a/parent": nameOf(0)}
	if diff := cmp.Diff(want, writeLabels(labels, nameOf)); diff != "" {
		t.Errorf("on the trial (-want +got):\n%s", diff)
	}
}

// TestKatibsTrialsAreLearntFrom goes on with a search that Katib began, whose
// trials have names of its own: each of their ends is learned, also after a crash
// and when the list of suggestions has been pruned.
func TestKatibsTrialsAreLearntFrom(t *testing.T) {
	t.Parallel()
	e, s := search("random")
	trials := map[string]*v1beta1.Trial{}
	find := func(name string) *v1beta1.Trial { return trials[name] }
	for i, name := range []string{"e-x1y2z3a4", "e-b5c6d7e8", "e-f9g0h1i2"} {
		a := v1beta1.TrialAssignment{Name: name, ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "units", Value: strconv.Itoa(i + 1)}, {Name: "optimizer", Value: "sgd"}}}
		s.Status.Suggestions = append(s.Status.Suggestions, a)
		trials[name] = end(e, a, "", "")
		s.Status.SuggestionCount++
	}
	var x *session
	step := func(afresh bool) {
		t.Helper()
		var err error
		if afresh {
			x, err = resume(e, s, find, nil)
		}
		if err = errors.Join(err, x.learn(find)); err != nil {
			t.Fatal(err)
		}
		if err := x.extend(t.Context(), &s.Status, s.Status.SuggestionCount+1, nil); err != nil {
			t.Fatal(err)
		}
		made := s.Status.Suggestions[len(s.Status.Suggestions)-1]
		trials[made.Name] = end(e, made, v1beta1.ConditionSucceeded, "7")
		s.Status.Suggestions = prune(s.Status.Suggestions, 2, func(name string) bool { return trials[name].IsCompleted() && !x.given(name) })
	}
	step(true)
	for i, name := range []string{"e-x1y2z3a4", "e-b5c6d7e8", "e-f9g0h1i2"} {
		trials[name] = end(e, v1beta1.TrialAssignment{ParameterAssignments: trials[name].Spec.ParameterAssignments}, v1beta1.ConditionSucceeded, strconv.Itoa(i))
		for range 3 {
			step(i == 1)
		}
		if got := x.history.Trial(i); got.State != optimize.Complete || got.Value() != float64(i) || got.Point.Int("units") != i+1 {
			t.Errorf("of trial %s is known %+v", name, got)
		}
	}
	if got := s.Status.Suggestions[3].Name; len(s.Status.Suggestions) != 5 || got != nameOf(int(s.Status.SuggestionCount)-2) {
		t.Errorf("%d suggestions are kept, the fourth %s; want Katib's three and the newest two", len(s.Status.Suggestions), got)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	e, _ := search("random")
	for name, c := range map[string]struct {
		reason    string
		condition v1beta1.ConditionType
		loss      string
		want      optimize.Result
	}{
		"Succeeded":   {"its value counts", v1beta1.ConditionSucceeded, "0.5", optimize.Values(0.5)},
		"Infinite":    {"this is none", v1beta1.ConditionSucceeded, "inf", optimize.Result{State: optimize.Failed}},
		"NotANumber":  {"nor is this", v1beta1.ConditionSucceeded, "nan", optimize.Result{State: optimize.Failed}},
		"Unavailable": {"nothing is known of how good it is", v1beta1.ConditionMetricsUnavailable, "", optimize.Result{State: optimize.Failed}},
		"Failed":      {"a value on the way does not count", v1beta1.ConditionFailed, "0.5", optimize.Result{State: optimize.Failed}},
		"Killed":      {"nor here", v1beta1.ConditionKilled, "0.5", optimize.Result{State: optimize.Failed}},
		"Stopped":     {"it got that far", v1beta1.ConditionEarlyStopped, "0.5", optimize.Result{State: optimize.Stopped, Values: []float64{0.5}}},
		"StoppedSoon": {"it got nowhere", v1beta1.ConditionEarlyStopped, "", optimize.Result{State: optimize.Stopped}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, outcome(end(e, v1beta1.TrialAssignment{}, c.condition, c.loss))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestLostTrialsLeaveTheOthersAlone(t *testing.T) {
	t.Parallel()
	e, s := search("random")
	s.Status.SuggestionCount = 30 // of which nothing is left
	x, err := resume(e, s, noTrial, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.extend(t.Context(), &s.Status, 31, nil); err != nil {
		t.Fatal(err)
	}
	if len(s.Status.Suggestions) != 1 || s.Status.Suggestions[0].Name != nameOf(30) {
		t.Errorf("suggestions %+v, want number 30 alone", s.Status.Suggestions)
	}
}

func TestExhaustion(t *testing.T) {
	t.Parallel()
	e, s := search("grid")
	x, err := resume(e, s, noTrial, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.extend(t.Context(), &s.Status, 50, nil); !errors.Is(err, optimize.ErrExhausted) || s.Status.SuggestionCount != 40 {
		t.Errorf("extend() = %v with %d suggestions, want all 40 and then ErrExhausted", err, s.Status.SuggestionCount)
	}
}

func TestUnusableSearches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		change func(*v1beta1.Experiment, *v1beta1.Suggestion)
		want   string
	}{
		"NoAlgorithm": {"admission was passed by", func(_ *v1beta1.Experiment, s *v1beta1.Suggestion) { s.Spec.Algorithm = nil }, "spec.algorithm"},
		"Stopping": {"and with a rule whose settings are wrong", func(_ *v1beta1.Experiment, s *v1beta1.Suggestion) {
			s.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop",
				AlgorithmSettings: []v1beta1.EarlyStoppingSetting{{Name: "start_step", Value: "0"}}}
		}, "setting start_step is 0: want an integer from 1"},
		"Nas":     {"an architecture consists of something", func(e *v1beta1.Experiment, _ *v1beta1.Suggestion) { e.Spec.NasConfig = &v1beta1.NasConfig{} }, "nasConfig"},
		"BadList": {"the error names the parameter", func(e *v1beta1.Experiment, _ *v1beta1.Suggestion) { e.Spec.Parameters[1].FeasibleSpace.List = nil }, "optimizer"},
		"Setting": {"and the setting", func(_ *v1beta1.Experiment, s *v1beta1.Suggestion) {
			s.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "speed", Value: "1"}}
		}, "speed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, s := search("random")
			c.change(e, s)
			if _, err := resume(e, s, noTrial, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: resume() = %v, want an error with %q", c.reason, err, c.want)
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	if a, b := seedFor("a", "random", nil), seedFor("b", "random", nil); cmp.Equal(a, b) || !cmp.Equal(a, seedFor("a", "random", nil)) {
		t.Errorf("seeds %v and %v: want one of its own for each experiment, always the same", a, b)
	}
	if got := seedFor("a", "random", map[string]string{randomState: "7"}); got != nil {
		t.Errorf("a seed %v replaces the given one", got)
	}
	if got := seedFor("a", "darts", nil); got != nil {
		t.Errorf("a seed %v is given to an algorithm that takes none", got)
	}
	if got := seedFor("a", "grid", nil); got != nil {
		t.Errorf("a seed %v would shuffle a grid that goes in order", got)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	type is struct {
		over           bool
		policy         v1beta1.ResumePolicyType
		condition      v1beta1.ConditionType
		reason         string
		requests, made int32
	}
	for name, c := range map[string]struct {
		reason string
		is     is
		want   action
	}{
		"New":          {"A new suggestion gets its conditions, even if nothing is asked.", is{}, suggest},
		"Asked":        {"More is asked than was made.", is{condition: v1beta1.ConditionRunning, requests: 3, made: 1}, suggest},
		"Answered":     {"Nothing to do.", is{condition: v1beta1.ConditionRunning, requests: 3, made: 3}, rest},
		"Ended":        {"The algorithm has nothing more.", is{condition: v1beta1.ConditionSucceeded, reason: ReasonEndReached, requests: 3, made: 1}, rest},
		"Failed":       {"A failure is final.", is{condition: v1beta1.ConditionFailed, requests: 3}, rest},
		"OverNever":    {"The experiment is over, for good.", is{over: true, policy: v1beta1.NeverResume, condition: v1beta1.ConditionRunning}, retire},
		"OverVolume":   {"The experiment is over, and may go on.", is{over: true, policy: v1beta1.FromVolume, condition: v1beta1.ConditionRunning}, retire},
		"OverLong":     {"LongRunning keeps running.", is{over: true, policy: v1beta1.LongRunning, condition: v1beta1.ConditionRunning, requests: 3}, rest},
		"OverRetired":  {"It is retired already.", is{over: true, policy: v1beta1.NeverResume, condition: v1beta1.ConditionSucceeded, reason: reasonExperimentCompleted}, rest},
		"OverFailed":   {"A failed one is not retired.", is{over: true, policy: v1beta1.NeverResume, condition: v1beta1.ConditionFailed}, rest},
		"GoesOnVolume": {"The experiment goes on, and so does its suggestion.", is{policy: v1beta1.FromVolume, condition: v1beta1.ConditionSucceeded, reason: reasonExperimentCompleted, requests: 3, made: 3}, suggest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, s := search("random")
			e.Spec.ResumePolicy = c.is.policy
			if c.is.over {
				e.Status.Conditions.Set(metav1.Time{}, v1beta1.ConditionSucceeded, corev1.ConditionTrue, "", "")
			}
			if c.is.condition != "" {
				s.Status.Conditions.Set(metav1.Time{}, c.is.condition, corev1.ConditionTrue, c.is.reason, "")
			}
			s.Spec.Requests, s.Status.SuggestionCount = c.is.requests, c.is.made
			if got := decide(e, s); got != c.want {
				t.Errorf("%s decide() = %d, want %d", c.reason, got, c.want)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	list := func(names ...string) []v1beta1.TrialAssignment {
		var all []v1beta1.TrialAssignment
		for _, name := range names {
			all = append(all, v1beta1.TrialAssignment{Name: name})
		}
		return all
	}
	ended := func(name string) bool { return name != "b" }
	if diff := cmp.Diff(list("b", "d", "e"), prune(list("a", "b", "c", "d", "e"), 2, ended)); diff != "" {
		t.Errorf("prune() keeps the newest two and what has not ended: -want, +got:\n%s", diff)
	}
	if got := prune(list("a"), 2, ended); len(got) != 1 {
		t.Errorf("prune() of a short list = %v", got)
	}
}

// TestSuggestionsThatCouldNotBeStored are offered again, and count once.
func TestSuggestionsThatCouldNotBeStored(t *testing.T) {
	t.Parallel()
	e, stored := search("random")
	x, err := resume(e, stored, noTrial, nil)
	if err != nil {
		t.Fatal(err)
	}
	lost := stored.DeepCopy()
	if err := x.extend(t.Context(), &lost.Status, 3, nil); err != nil {
		t.Fatal(err)
	}
	for _, requests := range []int32{2, 2, 5} { // some of them, none, and the last with new ones
		if !x.continues(int(stored.Status.SuggestionCount)) {
			t.Fatalf("the session does not go on from %d suggestions", stored.Status.SuggestionCount)
		}
		if err := x.extend(t.Context(), &stored.Status, requests, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(lost.Status.Suggestions, stored.Status.Suggestions[:3]); diff != "" {
		t.Errorf("the stored suggestions are not those that were made (-made +stored):\n%s", diff)
	}
	if stored.Status.SuggestionCount != 5 || x.history.Len() != 5 {
		t.Errorf("%d suggestions are stored and %d in the history, want 5", stored.Status.SuggestionCount, x.history.Len())
	}
	for _, count := range []int{1, 6} {
		if x.continues(count) {
			t.Errorf("the session goes on from %d suggestions, of which it knows nothing", count)
		}
	}
}
