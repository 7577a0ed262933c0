// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/training"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
	"diwan.dev/diwan/optimize"
)

const experiment = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: tune, namespace: ns}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.1"}}
  trialTemplate:
    primaryContainerName: main
    successCondition: status.done
    failureCondition: status.broken
    trialParameters: [{name: rate, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, args: ["${trialParameters.rate}"]}]}}}
`

// runs are the kinds of Kubeflow's that trials run.
func runs() Runs { return domain.Kinds(training.Domain(training.Options{})) }

// server answers as it does for the API server, but for TLS.
func server(t *testing.T, templates client.Reader) *httptest.Server {
	t.Helper()
	known := v1beta1.Algorithms{
		Search: map[string]bool{}, EarlyStopping: map[string]bool{}, Check: searchspace.Check, CheckEarlyStopping: earlystopping.Check,
	}
	for _, a := range optimize.Known() {
		known.Search[a.Name] = true
	}
	for _, name := range earlystopping.Known() {
		known.EarlyStopping[name] = true
	}
	mux := http.NewServeMux()
	for path, handler := range Handlers(Config{Known: true, Algorithms: known, Runs: runs(), Templates: trialtemplate.Library{Reader: templates, Namespace: "kubeflow"}}) {
		mux.Handle(path, &ctrladmission.Webhook{Handler: handler})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// ask sends a review as the API server does; old may be empty.
func ask(t *testing.T, s *httptest.Server, path, object, old string) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "1", Name: "tune", Namespace: "ns",
		Kind: metav1.GroupVersionKind{Group: v1beta1.Group, Version: v1beta1.Version, Kind: v1beta1.ExperimentKind}}
	request.Object = runtime.RawExtension{Raw: toJSON(t, object)}
	if old != "" {
		request.OldObject = runtime.RawExtension{Raw: toJSON(t, old)}
	}
	review := admissionv1.AdmissionReview{Request: request}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(s.URL+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	review = admissionv1.AdmissionReview{}
	if err := json.NewDecoder(response.Body).Decode(&review); err != nil {
		t.Fatal(err)
	}
	return review.Response
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// defaulted returns the object as the API server stores it.
func defaulted(t *testing.T, s *httptest.Server, object string) string {
	t.Helper()
	answer := ask(t, s, PathMutateExperiment, object, "")
	if !answer.Allowed {
		t.Fatalf("defaults: %s", answer.Result.Message)
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(toJSON(t, object))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func message(r *admissionv1.AdmissionResponse) string {
	if r.Allowed {
		return ""
	}
	return r.Result.Message
}

func TestMutateSetsDefaults(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	got := &v1beta1.Experiment{}
	if err := json.Unmarshal([]byte(defaulted(t, s, experiment)), got); err != nil {
		t.Fatal(err)
	}
	want := &v1beta1.Experiment{}
	if err := yaml.Unmarshal([]byte(experiment), want); err != nil {
		t.Fatal(err)
	}
	want.SetDefaults(runs().Defaults()...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMutateWarnsOfFieldsThatItDrops(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	object := strings.Replace(experiment, "  algorithm:", "  maxTrialsCount: 5\n  algorithm:", 1)
	answer := ask(t, s, PathMutateExperiment, object, "")
	if diff := cmp.Diff([]string{`unknown field "spec.maxTrialsCount" is ignored; did you mean "maxTrialCount"?`}, answer.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if stored := defaulted(t, s, object); strings.Contains(stored, "maxTrialsCount") {
		t.Errorf("the field is kept: %s", stored)
	}
}

// TestMutateMendsCategorical sends what search.categorical of Katib's SDK makes.
func TestMutateMendsCategorical(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	const double = `parameterType: double, feasibleSpace: {min: "0.01", max: "0.1"}`
	with := func(space string) string {
		return strings.Replace(experiment, double, "parameterType: categorical, feasibleSpace: "+space, 1)
	}
	got, want := &v1beta1.Experiment{}, &v1beta1.Experiment{}
	if err := json.Unmarshal([]byte(defaulted(t, s, with(`{distribution: [adam, 0.5, 12345678901234567, true]}`))), got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(with(`{list: [adam, "0.5", "12345678901234567", "true"]}`)), want); err != nil {
		t.Fatal(err)
	}
	want.SetDefaults(runs().Defaults()...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, space := range []string{`{distribution: [a], list: [b]}`, `{distribution: {}}`, `{list: [1]}`} {
		if got := message(ask(t, s, PathMutateExperiment, with(space), "")); !strings.Contains(got, "must be of type") {
			t.Errorf("%s: the answer is %q, want that a type is wrong", space, got)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	cases := []struct{ reason, old, new, want string }{
		{"nothing is wrong", "", "", ""},
		{"a fault in the spec", "minimize", "improve", "spec.objective.type"},
		{"an algorithm that searches something else", "random", "enas", "nasConfig"},
		{"an algorithm with a setting out of range", "algorithmName: random", "algorithmName: tpe, algorithmSettings: [{name: gamma, value: '2'}]", "setting gamma is \"2\""},
		{"an algorithm that cannot search the space", "random", "grid", "step"},
		{"a fault in the template", "rate}", "rat}", "spec.trialTemplate.trialSpec"},
		{"a value of a wrong type", `min: "0.01"`, "min: 0.01", "spec.parameters.feasibleSpace.min: is a number, but must be of type string"},
		{"a count that is too large to read", "  algorithm:", "  maxTrialCount: 99999999999\n  algorithm:", "spec.maxTrialCount: is a number 99999999999, but must be of type int32"},
		{"a template without a kind", "      kind: Job\n", "", "spec.trialTemplate.trialSpec.kind: Required value"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			got := message(ask(t, s, PathValidateExperiment, strings.Replace(experiment, c.old, c.new, 1), ""))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the answer is %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	old := defaulted(t, s, experiment)
	broken := strings.Replace(old, `"minimize"`, `"improve"`, 1)
	cases := []struct{ reason, old, new, want string }{
		{"the same", old, old, ""},
		{"a fault that was there before may stay", broken, strings.Replace(broken, `"name":"tune"`, `"name":"tune","labels":{"a":"b"}`, 1), ""},
		{"a count", old, strings.Replace(old, `"parallelTrialCount":3`, `"parallelTrialCount":5`, 1), ""},
		{"a count that is not valid", old, strings.Replace(old, `"parallelTrialCount":3`, `"parallelTrialCount":0`, 1), "spec.parallelTrialCount"},
		{"anything else", old, strings.Replace(old, `"random"`, `"sobol"`, 1), "only parallelTrialCount"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			got := message(ask(t, s, PathValidateExperiment, c.new, c.old))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the answer is %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestValidateTrialAndSuggestion(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	cases := []struct{ reason, path, object, want string }{
		{"a trial that can be read", PathValidateTrial, "spec: {runSpec: {apiVersion: v1, kind: Pod}}", ""},
		{"a trial that runs nothing", PathValidateTrial, "spec: {}", "spec.runSpec"},
		{"a run without a kind", PathValidateTrial, "spec: {runSpec: {a: b}}", "spec.runSpec.kind: Required value"},
		{"a collector that is no container", PathValidateTrial, "spec: {metricsCollector: {collector: {customCollector: {name: 5}}}}", "cannot read the object"},
		{"a suggestion that can be read", PathValidateSuggestion, "spec: {requests: 3}", ""},
		{"a number that is too large", PathValidateSuggestion, "spec: {requests: 99999999999}", "cannot read the object"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			got := message(ask(t, s, c.path, c.object, ""))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the answer is %q, want %q in it", got, c.want)
			}
		})
	}
}

// TestAnswersStayShort holds that hostile objects get an answer that can be
// read, however many faults they have.
func TestAnswersStayShort(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	var many strings.Builder
	for i := range 900 {
		fmt.Fprintf(&many, "  - {name: p%d, parameterType: float, feasibleSpace: {}, f%d: 1}\n", i, i)
	}
	object := strings.Replace(experiment, "  parameters:\n", "  parameters:\n"+many.String(), 1)
	object = strings.Replace(object, "random", strings.Repeat("x", 1<<20), 1)
	answer := ask(t, s, PathValidateExperiment, object, "")
	if got := message(answer); got == "" || len(got) > 16<<10 || !strings.Contains(got, "more faults") {
		t.Errorf("the answer has %d bytes: %.300s", len(got), got)
	}
	answer = ask(t, s, PathMutateExperiment, object, "")
	if len(answer.Warnings) > admission.MaxReasons+1 {
		t.Errorf("there are %d warnings", len(answer.Warnings))
	}
}

func TestDeepNestingIsAnswered(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	object := strings.Replace(string(toJSON(t, experiment)), `"args":[`, `"volumes":`+deep+`,"args":[`, 1)
	if answer := ask(t, s, PathValidateExperiment, object, ""); answer.Allowed {
		t.Error("the object is allowed")
	}
}

// configMaps has the ConfigMaps among the documents of a file.
func configMaps(t *testing.T, documents []string) client.Reader {
	t.Helper()
	found := fake.NewClientBuilder()
	for _, d := range documents {
		m := &corev1.ConfigMap{}
		if err := yaml.Unmarshal([]byte(d), m); err == nil && m.Kind == "ConfigMap" {
			found.WithObjects(m)
		}
	}
	return found.Build()
}
