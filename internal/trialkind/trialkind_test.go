// SPDX-License-Identifier: Apache-2.0

package trialkind_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"diwan.dev/diwan/internal/trialkind"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		text   string
		want   []schema.GroupVersionKind
		err    string
	}{
		"Empty":   {"a cluster need not have a configuration", "", nil, ""},
		"Others":  {"what it says of other things is no matter", "runtime: {suggestions: [{algorithmName: x}]}", nil, ""},
		"Kinds":   {"Katib's form", "init: {controller: {trialResources: [Workflow.v1alpha1.argoproj.io, PipelineRun.v1.tekton.dev]}}", []schema.GroupVersionKind{{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}, {Group: "tekton.dev", Version: "v1", Kind: "PipelineRun"}}, ""},
		"Core":    {"the core group has no name", `init: {controller: {trialResources: ["Pod.v1."]}}`, []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}}, ""},
		"NoGroup": {"a kind alone could be any", "init: {controller: {trialResources: [Workflow]}}", nil, `trialResources[0]: "Workflow": want Kind.version.group`},
		"NoYAML":  {"a broken text is no empty one", "init: [", nil, "cannot read katib-config.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := trialkind.Parse(c.text)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%s: error %v, want %q", c.reason, err, c.err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.reason, got, c.want)
			}
		})
	}
}

func TestCheckWithoutConfiguration(t *testing.T) {
	t.Parallel()
	var d trialkind.Directory
	for _, kind := range trialkind.Known() {
		if err := d.Check(t.Context(), kind); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
	err := d.Check(t.Context(), schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"})
	if !errors.Is(err, trialkind.ErrNotPermitted) || !strings.HasPrefix(err.Error(), "Workflow.v1alpha1.argoproj.io is not a kind that trials may have: add it to init.controller.trialResources") {
		t.Errorf("a kind that nobody named gives %v", err)
	}
}

// FuzzParse holds that no configuration makes parsing panic, and that what it
// yields can be written as it was.
func FuzzParse(f *testing.F) {
	f.Add("init: {controller: {trialResources: [Workflow.v1alpha1.argoproj.io]}}")
	f.Add(`init: {controller: {trialResources: ["Pod.v1.", ".", "..", "a.b.c.d"]}}`)
	f.Add("init: &a {controller: *a}")
	f.Fuzz(func(t *testing.T, text string) {
		kinds, err := trialkind.Parse(text)
		if err != nil {
			return
		}
		for _, kind := range kinds {
			again, _ := schema.ParseKindArg(trialkind.Format(kind))
			if again == nil || *again != kind {
				t.Errorf("%v is written as %q", kind, trialkind.Format(kind))
			}
		}
	})
}
