// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

func all(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, d := range list {
		byName[d.Name] = d
	}
	return byName
}

// internal returns a definition as the API server handles it.
func internal(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	d = d.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
	d.Status.StoredVersions = []string{d.Spec.Versions[0].Name}
	out := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// schemaOf returns the schema of a definition's only version.
func schemaOf(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) *apiextensions.JSONSchemaProps {
	t.Helper()
	in := internal(t, d)
	if in.Spec.Validation != nil {
		return in.Spec.Validation.OpenAPIV3Schema
	}
	return in.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestAPIServerAcceptsDefinitions(t *testing.T) {
	t.Parallel()
	for name, d := range all(t) {
		if errs := apiextensionsvalidation.ValidateCustomResourceDefinition(t.Context(), internal(t, d)); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs.ToAggregate())
		}
	}
}

// TestDefinitionsLookLikeKatibs holds what kubectl shows.
func TestDefinitionsLookLikeKatibs(t *testing.T) {
	t.Parallel()
	state := []string{"Type=.status.conditions[-1:].type", "Status=.status.conditions[-1:].status"}
	age := "Age=.metadata.creationTimestamp"
	want := map[string][]string{
		"experiments.kubeflow.org": append(slices.Clone(state), age),
		"trials.kubeflow.org":      append(slices.Clone(state), age),
		"suggestions.kubeflow.org": append(slices.Clone(state), "Requested=.spec.requests", "Assigned=.status.suggestionCount", age),
	}
	got := map[string][]string{}
	for name, d := range all(t) {
		v := d.Spec.Versions[0]
		if v.Name != "v1beta1" {
			continue
		}
		for _, c := range v.AdditionalPrinterColumns {
			got[name] = append(got[name], c.Name+"="+c.JSONPath)
		}
		if v.Subresources == nil || v.Subresources.Status == nil || d.Spec.Scope != apiextensionsv1.NamespaceScoped {
			t.Errorf("%s must be namespaced, with a status of its own", name)
		}
		if diff := cmp.Diff([]string{"all", "kubeflow", "katib"}, d.Spec.Names.Categories); diff != "" {
			t.Errorf("%s: categories (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// TestTrainingJobsLookLikeUpstreams holds what kubectl and autoscalers see of
// training jobs.
func TestTrainingJobsLookLikeUpstreams(t *testing.T) {
	t.Parallel()
	definitions := all(t)
	for _, job := range v1.Jobs() {
		kind := job.Traits()
		d := definitions[kind.Plural+".kubeflow.org"]
		if d == nil {
			t.Errorf("%s has no definition", kind.Kind)
			continue
		}
		v := d.Spec.Versions[0]
		columns := map[string]string{}
		for _, c := range v.AdditionalPrinterColumns {
			columns[c.Name] = c.JSONPath
		}
		if diff := cmp.Diff(map[string]string{"State": ".status.conditions[-1:].type", "Age": ".metadata.creationTimestamp"}, columns); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", kind.Kind, diff)
		}
		if v.Name != "v1" || !v.Storage || d.Spec.Names.Kind != kind.Kind || d.Spec.Scope != apiextensionsv1.NamespaceScoped || v.Subresources.Status == nil {
			t.Errorf("%s must be stored as v1, be namespaced, and have a status of its own", kind.Kind)
		}
		want := ""
		if kind.Scales {
			want = ".spec." + kind.Field + ".Worker.replicas"
		}
		got := ""
		if s := v.Subresources.Scale; s != nil {
			got = s.SpecReplicasPath
		}
		if got != want {
			t.Errorf("%s scales by %q, want %q", kind.Kind, got, want)
		}
	}
}

// TestFieldsAreExplained holds that kubectl explain has something to say about
// each of our fields.
func TestFieldsAreExplained(t *testing.T) {
	t.Parallel()
	var walk func(path string, s apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s apiextensionsv1.JSONSchemaProps) {
		if s.Description == "" && !strings.HasSuffix(path, ".metadata") && !strings.HasSuffix(path, "[]") {
			t.Errorf("%s has no description", path)
		}
		for name, child := range s.Properties {
			walk(path+"."+name, child)
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(path+"[]", *s.Items.Schema)
		}
	}
	for _, d := range all(t) {
		walk(d.Spec.Names.Singular, *d.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
}

// TestSchema holds which experiments the API server takes before it asks any
// webhook: what Katib, which has no schema, can decode.
func TestSchema(t *testing.T) {
	t.Parallel()
	experiment := all(t)["experiments.kubeflow.org"]
	cases := []struct{ reason, object, want string }{
		{"nothing is set", "{}", ""},
		{"a field of a later version", "spec: {later: {a: 1}, objective: {also: later}}", ""},
		{"nothing where a value could be", "spec: {objective: {goal: null}, parameters: null, earlyStopping: null}\nstatus: null", ""},
		{"duplicates, which Katib lets pass", "spec: {algorithm: {algorithmSettings: [{name: a, value: x}, {name: a, value: z}]}}", ""},
		{"a goal without a point", "spec: {objective: {goal: 1}}", ""},
		{"any object as a template", "spec: {trialTemplate: {trialSpec: {kind: K, metadata: {labels: {a: '${x}'}}, anything: [1, a, null]}}}", ""},
		{"a number where text is due", "spec: {parameters: [{feasibleSpace: {min: 0.01}}]}", "spec.parameters[0].feasibleSpace.min"},
		{"text where a number is due", "spec: {maxTrialCount: many}", "spec.maxTrialCount"},
		{"a count with a point", "spec: {maxTrialCount: 1.5}", "spec.maxTrialCount"},
		{"a count that no one can read", "spec: {maxTrialCount: 99999999999}", "spec.maxTrialCount"},
		{"a list where an object is due", "spec: [1]", "spec"},
		{"text as a template", "spec: {trialTemplate: {trialSpec: text}}", "spec.trialTemplate.trialSpec"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			got := validate(t, experiment, c.object)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the API server says %q, want %q in it", got, c.want)
			}
		})
	}
}

// TestExamplesFitTheSchema holds that nothing of Katib's examples is rejected or
// lost.
func TestExamplesFitTheSchema(t *testing.T) {
	t.Parallel()
	experiment := all(t)["experiments.kubeflow.org"]
	files, err := filepath.Glob("../../examples/*/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			if !strings.Contains(document, "kind: Experiment\n") {
				continue
			}
			if got := validate(t, experiment, document); got != "" {
				t.Errorf("%s: %s", file, got)
			}
		}
	}
}

// validate does what the API server does before it stores an object, and
// returns its message, or that something was lost.
func validate(t *testing.T, d *apiextensionsv1.CustomResourceDefinition, text string) string {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	props := schemaOf(t, d)
	structural, err := schema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, structural)
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, structural, true)
	after, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		return "fields were lost: " + string(after)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidateCustomResource(nil, object, validator); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}
