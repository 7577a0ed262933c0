// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
)

// TestExperimentsComeBack writes experiments and reads them.
func TestExperimentsComeBack(t *testing.T) {
	t.Parallel()
	e := &kubeflow.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e"}}
	e.Spec = kubeflow.ExperimentSpec{
		Objective:          &kubeflow.ObjectiveSpec{Type: kubeflow.ObjectiveTypeMaximize, Goal: ptr.To(0.9), ObjectiveMetricName: "acc", AdditionalMetricNames: []string{"loss"}},
		MaxTrialCount:      ptr.To[int32](9),
		ParallelTrialCount: ptr.To[int32](3),
		Algorithm:          &kubeflow.AlgorithmSpec{AlgorithmName: "a", AlgorithmSettings: []kubeflow.AlgorithmSetting{{Name: "s", Value: "1"}}},
		EarlyStopping:      &kubeflow.EarlyStoppingSpec{AlgorithmName: "m", AlgorithmSettings: []kubeflow.EarlyStoppingSetting{{Name: "s", Value: "2"}}},
		NasConfig: &kubeflow.NasConfig{GraphConfig: kubeflow.GraphConfig{NumLayers: ptr.To[int32](2), InputSizes: []int32{1}, OutputSizes: []int32{2}},
			Operations: []kubeflow.Operation{{OperationType: "o", Parameters: []kubeflow.ParameterSpec{{Name: "p", ParameterType: kubeflow.ParameterTypeInt}}}}},
	}
	for i, kind := range []kubeflow.ParameterType{kubeflow.ParameterTypeDouble, kubeflow.ParameterTypeInt, kubeflow.ParameterTypeDiscrete, kubeflow.ParameterTypeCategorical} {
		distribution := []kubeflow.Distribution{kubeflow.DistributionUniform, kubeflow.DistributionLogUniform, kubeflow.DistributionNormal, kubeflow.DistributionLogNormal}[i]
		e.Spec.Parameters = append(e.Spec.Parameters, kubeflow.ParameterSpec{Name: string(kind), ParameterType: kind,
			FeasibleSpace: kubeflow.FeasibleSpace{Min: "1", Max: "2", Step: "3", List: []string{"4"}, Distribution: distribution}})
	}
	if diff := cmp.Diff(e, ExperimentOf(Experiment(e, nil))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	got := ExperimentOf(Experiment(e, []kubeflow.AlgorithmSetting{{Name: "s", Value: "2"}, {Name: "state", Value: "x"}}))
	want := []kubeflow.AlgorithmSetting{{Name: "s", Value: "2"}, {Name: "state", Value: "x"}}
	if diff := cmp.Diff(want, got.Spec.Algorithm.AlgorithmSettings); diff != "" {
		t.Errorf("the algorithm's own settings win: -want, +got:\n%s", diff)
	}
}

// TestTrials checks which trials are told, and what of them.
func TestTrials(t *testing.T) {
	t.Parallel()
	trial := func(name string, condition kubeflow.ConditionType, seen bool) *kubeflow.Trial {
		t := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Name: name}}
		t.Spec.Objective = &kubeflow.ObjectiveSpec{MetricStrategies: []kubeflow.MetricStrategy{{Name: "loss", Value: kubeflow.ExtractByMin}, {Name: "text", Value: kubeflow.ExtractByMax}}}
		if condition != "" {
			t.Status.Conditions.Set(metav1.Now(), condition, corev1.ConditionTrue, "", "")
		}
		if seen {
			t.Status.Observation = &kubeflow.Observation{Metrics: []kubeflow.Metric{
				{Name: "loss", Min: "1", Max: "3", Latest: "2"}, {Name: "text", Min: "unavailable", Max: "unavailable", Latest: "word"}, {Name: "more", Min: "1", Max: "3", Latest: "2"},
			}}
		}
		return t
	}
	var got []string
	for _, m := range Trials([]*kubeflow.Trial{
		trial("created", "", false), trial("running", kubeflow.ConditionRunning, true), trial("failed", kubeflow.ConditionFailed, false),
		trial("unavailable", kubeflow.ConditionMetricsUnavailable, false), trial("stopped", kubeflow.ConditionEarlyStopped, false), trial("stopped-late", kubeflow.ConditionEarlyStopped, true),
	}) {
		text := m.GetName() + " " + m.GetStatus().GetCondition().String()
		for _, metric := range m.GetStatus().GetObservation().GetMetrics() {
			text += " " + metric.GetName() + "=" + metric.GetValue()
		}
		got = append(got, text)
	}
	want := []string{"created CREATED", "running RUNNING loss=1 text=word more=2", "failed FAILED", "stopped-late EARLYSTOPPED loss=1 text=word more=2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of trials of which nothing is known, nothing: -want, +got:\n%s", diff)
	}
}

func TestParseConfig(t *testing.T) {
	t.Parallel()
	services, err := ParseConfig(`
apiVersion: config.kubeflow.org/v1beta1
kind: KatibConfig
init: {controller: {webhookPort: 8443}}
runtime:
  suggestions: [{algorithmName: tpe}, {algorithmName: run, image: x, resources: {requests: {cpu: 1}}}, {algorithmName: mine, endpoint: "host:1"}]
  earlyStoppings: [{algorithmName: stop, endpoint: "[::1]:2"}]
`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"mine": "host:1", "run": "", "tpe": "neither endpoint nor image", "other": "no such service"} {
		got, err := Find(services.Suggestions, name)
		if got.Endpoint != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s is at %q, %v; want %q", name, got.Endpoint, err, want)
		}
		if errors.Is(err, ErrUnknown) != (name == "other") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if services.EarlyStoppings["stop"].Endpoint != "[::1]:2" {
		t.Errorf("early stopping services are %v", services.EarlyStoppings)
	}
	for text, want := range map[string]string{
		"runtime: {suggestions: [{algorithmName: a, endpoint: host}]}": "runtime.suggestions[0].endpoint",
		"runtime: [": "katib-config.yaml",
	} {
		if _, err := ParseConfig(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzAssignments checks that no answer of a service makes trials outside of the
// search space, or of a name that none may have.
func FuzzAssignments(f *testing.F) {
	e := &kubeflow.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e"}}
	e.Spec.Parameters = []kubeflow.ParameterSpec{
		{Name: "x", ParameterType: kubeflow.ParameterTypeDouble, FeasibleSpace: kubeflow.FeasibleSpace{Min: "0", Max: "1"}},
		{Name: "n", ParameterType: kubeflow.ParameterTypeInt, FeasibleSpace: kubeflow.FeasibleSpace{Min: "1", Max: "9"}},
		{Name: "c", ParameterType: kubeflow.ParameterTypeCategorical, FeasibleSpace: kubeflow.FeasibleSpace{List: []string{"a", "b"}}},
	}
	reply := func(name string, labels map[string]string, values ...string) *manager.GetSuggestionsReply {
		p := &manager.GetSuggestionsReply_ParameterAssignments{TrialName: name, Labels: labels}
		for i, v := range values {
			p.Assignments = append(p.Assignments, &manager.ParameterAssignment{Name: []string{"x", "n", "c"}[i], Value: v})
		}
		return &manager.GetSuggestionsReply{ParameterAssignments: []*manager.GetSuggestionsReply_ParameterAssignments{p}}
	}
	for _, r := range []*manager.GetSuggestionsReply{
		reply("", nil, "0.5", "3", "a"), reply("e-own", map[string]string{"k": "v"}, "1e-1", "+3", "b"), reply("e-", nil, "NaN", "1e99", ""),
	} {
		text, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &manager.GetSuggestionsReply{}
		if proto.Unmarshal(text, r) != nil {
			return
		}
		name := func(i int) string { return "e-" + strconv.Itoa(i) }
		made, err := Assignments(e, r, 3, name, func(name string) bool { return name == "e-taken" })
		if err != nil {
			if !errors.Is(err, ErrWrong) {
				t.Errorf("%v: %v", r, err)
			}
			return
		}
		for _, a := range made {
			x, xErr := strconv.ParseFloat(a.ParameterAssignments[0].Value, 64)
			if len(a.ParameterAssignments) != 3 || xErr != nil || !(x >= 0 && x <= 1) || a.Name == "e-taken" || len(validation.IsDNS1123Subdomain(a.Name)) > 0 {
				t.Errorf("%v makes %+v", r, a)
			}
		}
	})
}
