// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/controller/trialname"
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

// TestResumedSearchGoesOnAsIfNothingHadHappened makes suggestions in pieces.
// Between two the process dies, trials end, and the status is pruned.
func TestResumedSearchGoesOnAsIfNothingHadHappened(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom([]string{"random", "grid", "sobol"}).Draw(t, "algorithm")
		e, whole := search(algorithm)
		x, err := resume(e, whole, noTrial)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.extend(t.Context(), &whole.Status, 40, nameOf); err != nil {
			t.Fatal(err)
		}

		_, s := search(algorithm)
		trials := map[string]*v1beta1.Trial{}
		find := func(name string) *v1beta1.Trial { return trials[name] }
		var made []v1beta1.TrialAssignment
		x, err = resume(e, s, find)
		for s.Status.SuggestionCount < 40 {
			if rapid.Bool().Draw(t, "dies") {
				x, err = resume(e, s, find)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := x.learn(nameOf, find); err != nil {
				t.Fatal(err)
			}
			more := min(40, s.Status.SuggestionCount+int32(rapid.IntRange(1, 9).Draw(t, "more")))
			before := s.Status.SuggestionCount
			if err := x.extend(t.Context(), &s.Status, more, nameOf); err != nil {
				t.Fatal(err)
			}
			fresh := s.Status.Suggestions[len(s.Status.Suggestions)-int(more-before):]
			made = append(made, fresh...)
			for _, a := range fresh {
				trial := &v1beta1.Trial{Spec: v1beta1.TrialSpec{Objective: e.Spec.Objective, ParameterAssignments: a.ParameterAssignments}}
				if rapid.Bool().Draw(t, "ends") {
					trial.Status.Conditions.Set(metav1.Time{}, v1beta1.ConditionSucceeded, corev1.ConditionTrue, "", "")
					trial.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: "1"}}}
				}
				trials[a.Name] = trial
			}
			s.Status.Suggestions = prune(s.Status.Suggestions, 5, func(name string) bool { return trials[name].IsCompleted() })
		}
		if diff := cmp.Diff(whole.Status.Suggestions, made); diff != "" {
			t.Fatalf("%s: whole, in pieces:\n%s", algorithm, diff)
		}
	})
}

func TestLostTrialsLeaveTheOthersAlone(t *testing.T) {
	t.Parallel()
	e, s := search("random")
	s.Status.SuggestionCount = 30 // of which nothing is left
	x, err := resume(e, s, noTrial)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.extend(t.Context(), &s.Status, 31, nameOf); err != nil {
		t.Fatal(err)
	}
	if len(s.Status.Suggestions) != 1 || s.Status.Suggestions[0].Name != nameOf(30) {
		t.Errorf("suggestions %+v, want number 30 alone", s.Status.Suggestions)
	}
}

func TestExhaustion(t *testing.T) {
	t.Parallel()
	e, s := search("grid")
	x, err := resume(e, s, noTrial)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.extend(t.Context(), &s.Status, 50, nameOf); !errors.Is(err, optimize.ErrExhausted) || s.Status.SuggestionCount != 40 {
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
		"Later":       {"Katib has it, this version does not", func(_ *v1beta1.Experiment, s *v1beta1.Suggestion) { s.Spec.Algorithm.AlgorithmName = "tpe" }, "not yet available"},
		"Stopping": {"so with early stopping", func(_ *v1beta1.Experiment, s *v1beta1.Suggestion) {
			s.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop"}
		}, "medianstop is not yet available"},
		"Nas":     {"and architecture search", func(e *v1beta1.Experiment, _ *v1beta1.Suggestion) { e.Spec.NasConfig = &v1beta1.NasConfig{} }, "nasConfig"},
		"BadList": {"the error names the parameter", func(e *v1beta1.Experiment, _ *v1beta1.Suggestion) { e.Spec.Parameters[1].FeasibleSpace.List = nil }, "optimizer"},
		"Setting": {"and the setting", func(_ *v1beta1.Experiment, s *v1beta1.Suggestion) {
			s.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "speed", Value: "1"}}
		}, "speed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, s := search("random")
			c.change(e, s)
			if _, err := resume(e, s, noTrial); err == nil || !strings.Contains(err.Error(), c.want) {
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
