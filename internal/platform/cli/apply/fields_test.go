// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// TestFieldFaults asks the library by which the API server reads what is applied.
func TestFieldFaults(t *testing.T) {
	t.Parallel()
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for _, c := range []struct {
		reason, spec string
		want         []string
	}{
		{"a field that is misspelt names the real one", "{paralelism: 2}", []string{`unknown field spec.paralelism; did you mean "parallelism"?`}},
		{"one in a list too", "{template: {spec: {containers: [{name: main, comand: [a]}]}}}",
			[]string{`unknown field spec.template.spec.containers[name="main"].comand; did you mean "command"?`}},
		{"what is like no field names none", "{foo: 1}", []string{"unknown field spec.foo"}},
		{"a name that YAML takes for a boolean", "{template: {spec: {containers: [{name: main, env: [{name: n}]}]}}}",
			[]string{`spec.template.spec.containers[name="main"].env[name=false].name: must be a string, not false: put it in quotes (YAML reads n, no and off as false)`}},
		{"a number for text", "{template: {spec: {containers: [{name: main, args: [5, on]}]}}}", []string{
			`spec.template.spec.containers[name="main"].args[0]: must be a string, not the number 5: put it in quotes`,
			`spec.template.spec.containers[name="main"].args[1]: must be a string, not true: put it in quotes (YAML reads y, yes and on as true)`,
		}},
		{"text for a number", "{parallelism: many}", []string{"spec.parallelism: must be a number, not text"}},
		{"text for a boolean", "{suspend: maybe}", []string{"spec.suspend: must be true or false, not maybe"}},
		{"a list for text", "{template: {spec: {hostname: [a]}}}", []string{"spec.template.spec.hostname: must be a string, not a list"}},
		{"an object for text", "{template: {spec: {hostname: {a: b}}}}", []string{"spec.template.spec.hostname: must be a string, not an object"}},
		{"text for an object", "{template: a}", []string{"spec.template: must be an object, not a"}},
		{"text for a list", "{template: {spec: {containers: a}}}", []string{"spec.template.spec.containers: must be a list, not a"}},
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: "+c.spec+"}"), object); err != nil {
			t.Fatal(err)
		}
		_, err := converter.ObjectToTyped(object)
		if err == nil {
			t.Errorf("%s: nothing is wrong", c.reason)
			continue
		}
		// The words of the API server around it.
		message := "failed to create typed patch object (default/x; batch/v1, Kind=Job): " + err.Error()
		if diff := cmp.Diff(c.want, fieldFaults(object.GroupVersionKind(), message)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.reason, diff)
		}
	}
	strict := `Job in version "v1" cannot be handled as a Job: strict decoding error: unknown field "spec.paralelism", duplicate field "spec.a", unknown field "spec.foo"`
	want := []string{`unknown field spec.paralelism; did you mean "parallelism"?`, `duplicate field "spec.a"`, "unknown field spec.foo"}
	if diff := cmp.Diff(want, fieldFaults(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, strict)); diff != "" {
		t.Errorf("what the strict decoder says (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"unknown field spec.foo"}, fieldFaults(schema.GroupVersionKind{Kind: "Frob"}, `strict decoding error: unknown field "spec.foo"`)); diff != "" {
		t.Errorf("of a kind that is not known (-want +got)\n%s", diff)
	}
}
