// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

const experiment = `
parameters:
- {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.1"}}
- {name: cpus, parameterType: discrete, feasibleSpace: {list: ["1", "2"]}}
trialTemplate:
  primaryContainerName: main
  trialParameters:
  - {name: rate, reference: lr}
  - {name: cpus, reference: cpus}
  - {name: trial, reference: "${trialSpec.Name}"}
  trialSpec:
    apiVersion: batch/v1
    kind: Job
    metadata: {labels: {l: x}}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            command: [train, "--lr=${trialParameters.rate}", "${trialParameters.trial}"]
            resources: {limits: {cpu: "${trialParameters.cpus}", example.com/fpga: 1}}
`

func TestValidate(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason, old, new string
		want             []string
	}{
		{"nothing is wrong", "", "", nil},
		{"a name that is not declared", "--lr=", "--m=${trialParameters.momentum} --lr=", []string{"spec.trialTemplate.trialSpec", "${trialParameters.momentum}", "not declared"}},
		{"a name that is not used", "--lr=${trialParameters.rate}", "--lr=1", []string{"trialParameters[0].name", "${trialParameters.rate}", "not used"}},
		{"a reference that leads nowhere", "reference: lr", "reference: momentum", []string{"trialParameters[0].reference", "momentum", "spec.parameters[0].name", "no trial would use it"}},
		{"a property that is unknown", "trialSpec.Name}", "trialSpec.Nam}", []string{"spec.trialTemplate", "${trialSpec.Nam}", "Labels[key]"}},
		{"a label that is not there", "trialSpec.Name}", "trialSpec.Labels[m]}", []string{"has no such key"}},
		{"a name of its own", "{labels:", "{name: mine, labels:", []string{"trialSpec.metadata.name", "omit it"}},
		{"a namespace of its own", "{labels:", "{namespace: mine, labels:", []string{"trialSpec.metadata.namespace", "omit it"}},
		{"no version", "apiVersion: batch/v1", "x: y", []string{"trialSpec.apiVersion"}},
		{"a field that a Job does not have", "restartPolicy: Never", "restartPolicy: Never\n          replicas: 3", []string{`unknown field "spec.template.spec.replicas"`}},
		{"a field that is misspelt", "restartPolicy: Never", "restartPolicy: Never\n          hostnames: x", []string{`unknown field "spec.template.spec.hostnames"; did you mean "hostname"?`}},
		{"a field in the wrong place", "spec:\n      template:", "spec:\n      restartPolicy: Never\n      template:", []string{`unknown field "spec.restartPolicy"`}},
		{"a field of a wrong type", "spec:\n      template:", "spec:\n      parallelism: many\n      template:", []string{"must be a batch/v1 Job", "parallelism"}},
		{"a restart policy that Jobs refuse", "restartPolicy: Never", "restartPolicy: Always", []string{"template.spec.restartPolicy", "Always", "OnFailure"}},
		{"no restart policy", "restartPolicy: Never", "hostname: x", []string{"template.spec.restartPolicy"}},
		{"a primary container that is not there", "primaryContainerName: main", "primaryContainerName: train", []string{"primaryContainerName", "train", "which has: main"}},
		{"other kinds are not looked into", "kind: Job\n", "kind: Workflow\n    anything: goes\n", nil},
		{"nor Jobs of other groups", "apiVersion: batch/v1", "apiVersion: batch.volcano.sh/v1alpha1\n    anything: goes", nil},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(experiment, c.old) {
				t.Fatalf("the experiment has no %q", c.old)
			}
			spec := &v1beta1.ExperimentSpec{}
			if err := yaml.UnmarshalStrict([]byte(strings.Replace(experiment, c.old, c.new, 1)), spec); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := Validate(t.Context(), "ns", spec, Library{}).ToAggregate(); err != nil {
				got = err.Error()
			}
			if (got == "") != (len(c.want) == 0) {
				t.Fatalf("Validate says %q, want %q", got, c.want)
			}
			for _, text := range c.want {
				if !strings.Contains(got, text) {
					t.Errorf("Validate says %q, want %q in it", got, text)
				}
			}
		})
	}
}

func TestValidateConfigMap(t *testing.T) {
	t.Parallel()
	frame, library := fromConfigMap(uses("n=n"), "apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: ${trialParameters.n}\n"+
		"  template: {spec: {restartPolicy: Never, containers: [{name: main}]}}")
	frame.PrimaryContainerName = "main"
	spec := &v1beta1.ExperimentSpec{TrialTemplate: frame, Parameters: []v1beta1.ParameterSpec{
		{Name: "n", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "2"}}}}
	if errs := Validate(t.Context(), "ns", spec, library); len(errs) > 0 {
		t.Errorf("a number from a ConfigMap: %v", errs)
	}
	frame.ConfigMap.TemplatePath = "other"
	if errs := Validate(t.Context(), "ns", spec, library); len(errs) != 1 || errs[0].Field != "spec.trialTemplate.configMap" {
		t.Errorf("a key that is not there: %v", errs)
	}
}

// TestValidateQuotesNoConfigMap holds that what is wrong with a template in a
// ConfigMap is told without a word of it.
func TestValidateQuotesNoConfigMap(t *testing.T) {
	t.Parallel()
	const word = "hush"
	job := func(spec string) string {
		return "apiVersion: batch/v1\nkind: Job\nspec: {a: ${trialParameters.n}, " + spec + "}"
	}
	for reason, text := range map[string]string{
		"no object":             word + ": ${trialParameters.n}",
		"a list":                "- " + word,
		"a text":                word,
		"broken":                "a: " + word + ": b",
		"no kind":               `{"apiVersion": "v1", "password": "` + word + `"}`,
		"another parameter":     "apiVersion: v1\nkind: K\na: ${trialParameters.n} ${trialParameters." + word + "}",
		"a name":                "apiVersion: v1\nkind: K\nmetadata: {name: " + word + "}\na: ${trialParameters.n}",
		"a namespace":           "apiVersion: v1\nkind: K\nmetadata: {namespace: " + word + "}\na: ${trialParameters.n}",
		"an unknown field":      job(word + ": 1"),
		"a wrong type":          job("parallelism: " + word),
		"a restart policy":      "apiVersion: batch/v1\nkind: Job\nspec: {parallelism: ${trialParameters.n}, template: {spec: {restartPolicy: " + word + ", containers: [{name: main}]}}}",
		"another container":     "apiVersion: batch/v1\nkind: Job\nspec: {parallelism: ${trialParameters.n}, template: {spec: {restartPolicy: Never, containers: [{name: " + word + "}]}}}",
		"a label is looked for": "apiVersion: v1\nkind: K\nmetadata: {labels: {" + word + ": " + word + "}}\na: ${trialParameters.n} ${trialParameters.l}",
	} {
		frame, library := fromConfigMap(uses("n=n", "l=${trialSpec.Labels[x]}"), text)
		if !strings.Contains(text, "trialParameters.l") {
			frame.TrialParameters = frame.TrialParameters[:1]
		}
		frame.PrimaryContainerName = "main"
		spec := &v1beta1.ExperimentSpec{TrialTemplate: frame, Parameters: []v1beta1.ParameterSpec{
			{Name: "n", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "2"}}}}
		errs := Validate(t.Context(), "ns", spec, library)
		if len(errs) == 0 {
			t.Errorf("%s: nothing is wrong", reason)
		}
		for _, err := range errs {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%s: the ConfigMap is quoted: %v", reason, err)
			}
		}
	}
}

// TestValidateUnread holds what is checked of a template that cannot be read here.
func TestValidateUnread(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct{ namespace, reference, want string }{
		"its own":                      {"ns", "n", ""},
		"the operator's":               {system, "n", ""},
		"another's":                    {"other", "n", "spec.trialTemplate.configMap.configMapNamespace: Forbidden"},
		"its own, with other mistakes": {"ns", "m", "spec.trialTemplate.trialParameters[0].reference"},
	} {
		frame, _ := fromConfigMap(uses("n="+c.reference), "")
		frame.ConfigMap.ConfigMapNamespace = c.namespace
		spec := &v1beta1.ExperimentSpec{TrialTemplate: frame, Parameters: []v1beta1.ParameterSpec{{Name: "n"}}}
		errs := Validate(t.Context(), "ns", spec, Library{Namespace: system})
		if (len(errs) == 0) != (c.want == "") || len(errs) > 0 && !strings.Contains(errs[0].Error(), c.want) {
			t.Errorf("%s: %v, want %q", reason, errs, c.want)
		}
	}
}

func TestValidateArchitectureSearch(t *testing.T) {
	t.Parallel()
	spec := &v1beta1.ExperimentSpec{NasConfig: &v1beta1.NasConfig{}, TrialTemplate: &v1beta1.TrialTemplate{
		TrialParameters: uses("arch=architecture"),
		TrialSource:     v1beta1.TrialSource{TrialSpec: tree(t, "apiVersion: v1\nkind: Thing\ns: ${trialParameters.arch}")}}}
	if errs := Validate(t.Context(), "ns", spec, Library{}); len(errs) > 0 {
		t.Errorf("references of an architecture search: %v", errs)
	}
}

func TestValidateLeavesTheFrameToTheAPI(t *testing.T) {
	t.Parallel()
	for _, frame := range []*v1beta1.TrialTemplate{nil, {}, {TrialSource: v1beta1.TrialSource{
		TrialSpec: tree(t, "apiVersion: v1\nkind: Thing"), ConfigMap: &v1beta1.ConfigMapSource{}}}} {
		if errs := Validate(t.Context(), "ns", &v1beta1.ExperimentSpec{TrialTemplate: frame}, Library{}); len(errs) > 0 {
			t.Errorf("Validate says %v", errs)
		}
	}
}
