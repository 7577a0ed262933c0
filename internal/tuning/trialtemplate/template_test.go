// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// tree reads YAML as the API server stores it.
func tree(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(json); err != nil {
		t.Fatal(err)
	}
	return u
}

// uses makes trial parameters of name=reference pairs.
func uses(pairs ...string) []v1beta1.TrialParameterSpec {
	var out []v1beta1.TrialParameterSpec
	for _, p := range pairs {
		name, reference, _ := strings.Cut(p, "=")
		out = append(out, v1beta1.TrialParameterSpec{Name: name, Reference: reference})
	}
	return out
}

// gives makes assignments of name=value pairs.
func gives(pairs ...string) []v1beta1.ParameterAssignment {
	var out []v1beta1.ParameterAssignment
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		out = append(out, v1beta1.ParameterAssignment{Name: name, Value: value})
	}
	return out
}

// system is the namespace of the operator.
const system = "system"

// library has ConfigMaps, by namespace/name; those of system are templates for all.
func library(data map[string]map[string]string) Library {
	objects := fake.NewClientBuilder()
	for key, d := range data {
		namespace, name, _ := strings.Cut(key, "/")
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: d}
		if namespace == system {
			m.Labels = map[string]string{v1beta1.LabelComponent: v1beta1.ComponentTrialTemplates}
		}
		objects.WithObjects(m)
	}
	return Library{objects.Build(), system}
}

func fromConfigMap(params []v1beta1.TrialParameterSpec, text string) (*v1beta1.TrialTemplate, Library) {
	return &v1beta1.TrialTemplate{
		TrialParameters: params,
		TrialSource: v1beta1.TrialSource{ConfigMap: &v1beta1.ConfigMapSource{
			ConfigMapName: "templates", ConfigMapNamespace: "ns", TemplatePath: "t.yaml"}},
	}, library(map[string]map[string]string{"ns/templates": {"t.yaml": text}})
}

func TestRenderTree(t *testing.T) {
	t.Parallel()
	const kind = "apiVersion: v1\nkind: Thing\n"
	cases := []struct {
		reason, template string
		parameters       []v1beta1.TrialParameterSpec
		values           []v1beta1.ParameterAssignment
		want, err        string
	}{
		{"a value lands inside a string", kind + `args: ["--lr=${trialParameters.rate}"]`, uses("rate=lr"), gives("lr=0.1"),
			kind + `args: ["--lr=0.1"]`, ""},
		{"a string stays a string", kind + `a: ${trialParameters.n}`, uses("n=n"), gives("n=3"), kind + `a: "3"`, ""},
		{"a value lands in keys", kind + `labels: {"${trialParameters.k}": v}`, uses("k=k"), gives("k=key"), kind + `labels: {key: v}`, ""},
		{"several and the same again", kind + `s: ${trialParameters.a}${trialParameters.b}-${trialParameters.a}`, uses("a=x", "b=y"), gives("x=1", "y=2"),
			kind + `s: 12-1`, ""},
		{"quotes, backslashes and line ends are kept", kind + `s: ${trialParameters.a}`, uses("a=x"), gives("x=\"a\\b\n', \"x\": \"y"),
			kind + `s: "\"a\\b\n', \"x\": \"y"`, ""},
		{"an argument's quotes for a shell are taken away", kind + `args: ['--a="${trialParameters.a}"', '-b="${trialParameters.a}"']`, uses("a=x"), gives(`x="1"`),
			kind + `args: ['--a="1"', '-b="1"']`, ""},
		{"but no other quotes", kind + `args: ['run --a="${trialParameters.a}"', '--a="${trialParameters.a} "', '"${trialParameters.a}"']`, uses("a=x"), gives("x=1"),
			kind + `args: ['run --a="1"', '--a="1 "', '"1"']`, ""},
		{"an object's quotes for a shell are taken away", kind + `args: ['''{"a": "${trialParameters.a}"}''', '''{}''']`, uses("a=x"), gives("x=1"),
			kind + `args: ['{"a": "1"}', '{}']`, ""},
		{"names may have any character but braces", kind + `s: ${trialParameters.a<&> b.c$d[0]}`, uses("a<&> b.c$d[0]=x"), gives("x=1"), kind + `s: "1"`, ""},
		{"a value is not a template", kind + `s: ${trialParameters.a} ${trialParameters.b}`, uses("a=x", "b=y"), gives("x=${trialParameters.b}", "y=1"),
			kind + `s: "${trialParameters.b} 1"`, ""},
		{"numbers, booleans and null stay", kind + `a: [1, 1.5, true, null]`, nil, nil, kind + `a: [1, 1.5, true, null]`, ""},
		{"other dollars stay", kind + `a: ["$x", "${x}", "${trialParameters.", "$(x)"]`, nil, nil, kind + `a: ["$x", "${x}", "${trialParameters.", "$(x)"]`, ""},
		{"properties of the trial",
			"apiVersion: v1\nkind: Thing\nmetadata: {labels: {a: l}, annotations: {x.y/z: note}}\n" +
				`s: ${trialParameters.n} ${trialParameters.ns} ${trialParameters.k} ${trialParameters.v} ${trialParameters.l} ${trialParameters.a}`,
			uses("n=${trialSpec.Name}", "ns=${trialSpec.Namespace}", "k=${trialSpec.Kind}", "v=${trialSpec.APIVersion}",
				"l=${trialSpec.Labels[a]}", "a=${trialSpec.Annotations[x.y/z]}"), nil,
			"apiVersion: v1\nkind: Thing\nmetadata: {labels: {a: l}, annotations: {x.y/z: note}}\ns: trial ns Thing v1 l note", ""},
		{"an unknown property", kind, uses("a=${trialSpec.Color}"), nil, "", "Labels[key]"},
		{"an unknown property with a key", kind, uses("a=${trialSpec.Color[red]}"), nil, "", "Labels[key]"},
		{"labels without a key", kind, uses("a=${trialSpec.Labels}"), nil, "", "needs a key"},
		{"a label that is not there", kind + "metadata: {labels: {b: c}}", uses("a=${trialSpec.Labels[x]}"), nil, "", "has no such key"},
		{"an annotation where there are none", kind, uses("a=${trialSpec.Annotations[x]}"), nil, "", "has no such key"},
		{"an argument of a parameter that the trial lacks is left out", kind + `args: ["--a=${trialParameters.a}", "--m=${trialParameters.m}", "${trialParameters.m}"]`, uses("a=x", "m=maybe"), gives("x=1"),
			kind + `args: ["--a=1"]`, ""},
		{"but not what else there is in a text", kind + `args: ["run --m=${trialParameters.m}", "${trialParameters.a}${trialParameters.m}"]` + "\ns: ${trialParameters.m}", uses("a=x", "m=maybe"), gives("x=1"),
			kind + `args: ["run --m=", "1"]` + "\ns: ''", ""},
		{"and it is there in a trial that has it", kind + `args: ["--m=${trialParameters.m}"]`, uses("m=maybe"), gives("maybe=2"), kind + `args: ["--m=2"]`, ""},
		{"a parameter without a value", kind, uses("a=x"), nil, "", `"x", which has no value`},
		{"a value that no parameter uses", kind, uses("a=x"), gives("x=1", "y=2"), "", `no trial parameter refers to "y"`},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			given := tree(t, c.template)
			before := given.DeepCopy()
			template, err := Load(t.Context(), "ns", &v1beta1.ExperimentSpec{
				Parameters:    []v1beta1.ParameterSpec{{Name: "maybe", When: &v1beta1.ParameterCondition{Parameter: "x", Values: []string{"1"}}}},
				TrialTemplate: &v1beta1.TrialTemplate{TrialParameters: c.parameters, TrialSource: v1beta1.TrialSource{TrialSpec: given}},
			}, Library{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Render("trial", "ns", c.values)
			if diff := cmp.Diff(before, given); diff != "" {
				t.Errorf("Render changed the template:\n%s", diff)
			}
			checkRendered(t, got, err, c.want, c.err)
		})
	}
}

func TestRenderConfigMap(t *testing.T) {
	t.Parallel()
	const kind = "apiVersion: v1\nkind: Thing\n"
	cases := []struct {
		reason, template string
		values           []v1beta1.ParameterAssignment
		want, err        string
	}{
		{"a bare value has YAML's type", kind + "a: ${trialParameters.p}", gives("x=3"), kind + "a: 3", ""},
		{"a quoted value is a string", kind + `a: "${trialParameters.p}"`, gives("x=3"), kind + `a: "3"`, ""},
		{"a part of a string is a string", kind + `a: --n=${trialParameters.p}`, gives("x=3"), kind + `a: --n=3`, ""},
		{"JSON is YAML", `{"apiVersion":"v1","kind":"Thing","a":"${trialParameters.p}"}`, gives("x=3"), kind + `a: "3"`, ""},
		{"only the first document counts", kind + "a: ${trialParameters.p}\n---\nkind: Other\n", gives("x=3"), kind + "a: 3", ""},
		{"a value that breaks the text", kind + `a: "${trialParameters.p}"`, gives(`x="`), "", "not a YAML or JSON object"},
		{"text that is no object", "- a\n", gives("x=3"), "", `cannot use template "t.yaml" of ConfigMap ns/templates`},
		{"text that is nothing but a comment", "# nothing\n", gives("x=3"), "", "cannot use template"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			frame, library := fromConfigMap(uses("p=x"), c.template)
			template, err := Load(t.Context(), "ns", &v1beta1.ExperimentSpec{TrialTemplate: frame}, library)
			if err != nil {
				checkRendered(t, nil, err, c.want, c.err)
				return
			}
			got, err := template.Render("trial", "ns", c.values)
			checkRendered(t, got, err, c.want, c.err)
		})
	}
}

func checkRendered(t *testing.T, got *unstructured.Unstructured, err error, want, wantErr string) {
	t.Helper()
	if wantErr != "" {
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("Render says %v, want %q in it", err, wantErr)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	object := tree(t, want)
	object.SetName("trial")
	object.SetNamespace("ns")
	if diff := cmp.Diff(object, got); diff != "" {
		t.Errorf("Render (-want +got):\n%s", diff)
	}
}

func TestLoadSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	all := library(map[string]map[string]string{"ns/empty": {}, "ns/some": {"a": "x", "b": ""}, "system/shared": {"a": "kind: Job"}, "other/some": {"a": "x"}})
	hidden := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "hidden"}, Data: map[string]string{"a": "kind: Job"}}
	if err := all.Reader.(client.Client).Create(t.Context(), hidden); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		reason, namespace, name, path, want string
		library                             Library
		is                                  error
	}{
		{"nothing to read with", "ns", "some", "a", "ConfigMaps are not available here", Library{}, nil},
		{"no ConfigMap", "ns", "other", "a", "not found", all, nil},
		{"no keys", "ns", "empty", "a", "has no such key", all, ErrBroken},
		{"another key", "ns", "some", "c", "has no such key", all, ErrBroken},
		{"an empty template", "ns", "some", "b", "it is empty", all, ErrBroken},
		{"one of the operator's", system, "shared", "a", "", all, nil},
		{"one of the operator's that is no template", system, "hidden", "a", "label katib.kubeflow.org/component=trial-templates", all, nil},
		{"which looks as if it were not there", system, "nothing", "a", "label katib.kubeflow.org/component=trial-templates", all, nil},
		{"another namespace", "other", "some", "a", `must be "ns", the Experiment's namespace, or "system"`, all, ErrForbidden},
		{"another namespace, of which nothing is told", "other", "none", "a", `must be "ns", the Experiment's namespace, or "system"`, all, ErrForbidden},
		{"no namespace", "", "some", "a", `must be "ns"`, Library{Reader: all.Reader}, ErrForbidden},
	}
	for _, c := range cases {
		frame := &v1beta1.TrialTemplate{TrialSource: v1beta1.TrialSource{ConfigMap: &v1beta1.ConfigMapSource{
			ConfigMapName: c.name, ConfigMapNamespace: c.namespace, TemplatePath: c.path}}}
		_, err := Load(t.Context(), "ns", &v1beta1.ExperimentSpec{TrialTemplate: frame}, c.library)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: Load of %s/%s says %v, want %q in it and %v", c.reason, c.name, c.path, err, c.want, c.is)
		}
	}
	if _, err := Load(t.Context(), "ns", &v1beta1.ExperimentSpec{TrialTemplate: &v1beta1.TrialTemplate{}}, Library{}); err == nil {
		t.Error("Load of no template says nothing")
	}
}

// TestEveryValueArrives puts any text at any place of a tree and finds it there
// again, with the rest as it was.
func TestEveryValueArrives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[^{}]{1,12}`).Draw(t, "name")
		value := rapid.String().Draw(t, "value")
		before, after := rapid.StringMatching(`[^{}]*`).Draw(t, "before"), rapid.StringMatching(`[^{}$]*`).Draw(t, "after")
		template := &Template{
			parameters: uses(),
			tree:       &unstructured.Unstructured{Object: map[string]any{"a": []any{map[string]any{"b": before + placeholder(name) + after}}, "n": int64(1)}},
		}
		template.parameters = append(template.parameters, v1beta1.TrialParameterSpec{Name: name, Reference: "x"})
		got, err := template.Render("t", "ns", []v1beta1.ParameterAssignment{{Name: "x", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		delete(got.Object, "metadata")
		want := map[string]any{"a": []any{map[string]any{"b": before + value + after}}, "n": int64(1)}
		if diff := cmp.Diff(want, got.Object); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// FuzzRender holds that no template and value makes rendering panic, that each
// name found in a template is replaced, and that a tree's strings are the only
// thing that changes.
func FuzzRender(f *testing.F) {
	f.Add("apiVersion: v1\nkind: Job\na: ${trialParameters.x}", "x", "1", true)
	f.Add(`{"apiVersion":"v1","kind":"Job","${trialParameters.x}":["${trialParameters.${trialParameters.x}"]}`, "x", "\x00\"", false)
	f.Add("apiVersion: v1\nkind: K\nb: &b ${trialParameters.}}\nc: *b", "}", "*", true)
	f.Fuzz(func(t *testing.T, text, name, value string, inText bool) {
		object, err := parse(text)
		if err != nil {
			return
		}
		template := &Template{parameters: []v1beta1.TrialParameterSpec{{Name: name, Reference: "p"}}, tree: object}
		if inText {
			template.text = text
		}
		names := namesIn(template)
		out, err := template.Render("t", "ns", []v1beta1.ParameterAssignment{{Name: "p", Value: value}})
		if err != nil || inText || strings.ContainsAny(value+name, "${}") {
			return
		}
		left := &Template{tree: out}
		for _, n := range namesIn(left) {
			if n == name {
				t.Errorf("%q is still there after rendering %s", name, fmt.Sprint(names))
			}
		}
	})
}
