// SPDX-License-Identifier: Apache-2.0

package trialkind_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"diwan.dev/diwan/internal/tuning/trialkind"
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
	d := trialkind.Directory{Known: []schema.GroupVersionKind{{Group: "batch", Version: "v1", Kind: "Job"}, {Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}}}
	for _, kind := range d.Known {
		if err := d.Check(t.Context(), kind); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
	err := d.Check(t.Context(), schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"})
	if !errors.Is(err, trialkind.ErrNotPermitted) || !strings.HasPrefix(err.Error(), "Workflow.v1alpha1.argoproj.io is not a kind that trials may use: add it to init.controller.trialResources") {
		t.Errorf("a kind that nobody named gives %v", err)
	}
}

// TestPrivileged names kinds in the configuration with which an experiment's author
// could take the operator's rights.
func TestPrivileged(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{
		"Workflow.v1alpha1.argoproj.io": true, "Pod.v1.": true,
		"Secret.v1.": false, "ServiceAccount.v1.": false, "RoleBinding.v1.rbac.authorization.k8s.io": false,
		"Role.v1.rbac.authorization.k8s.io": false, "ValidatingWebhookConfiguration.v1.admissionregistration.k8s.io": false,
		"CustomResourceDefinition.v1.apiextensions.k8s.io": false, "CertificateSigningRequest.v1.certificates.k8s.io": false,
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "katib-config"}}
	names := slices.Collect(maps.Keys(kinds))
	config.Data = map[string]string{"katib-config.yaml": `init: {controller: {trialResources: ["` + strings.Join(names, `", "`) + `"]}}`}
	d := trialkind.Directory{Reader: fake.NewClientBuilder().WithObjects(config).Build()}
	for name, want := range kinds {
		kind, _ := schema.ParseKindArg(name)
		if err := d.Check(t.Context(), *kind); (err == nil) != want || err != nil && !errors.Is(err, trialkind.ErrNotPermitted) {
			t.Errorf("%s: %v, want it permitted: %v", name, err, want)
		}
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
