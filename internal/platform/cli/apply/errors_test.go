// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"diwan.dev/diwan/internal/platform/cli/manifest"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupKind{Group: "batch", Kind: "Job"}
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "x", errors.New("no"))
	hook := apierrors.NewGenericServerResponse(http.StatusBadRequest, "create", schema.GroupResource{}, "x", "", 0, false)
	hook.ErrStatus.Message = `admission webhook "v.example.com" denied the request: the name is too long.`
	hook.ErrStatus.Details = nil
	cases := map[string]struct {
		reason  string
		err     error
		existed bool
		want    []string
	}{
		"Fields": {
			reason: "Each cause is on a line of its own, with its field",
			err: apierrors.NewInvalid(jobs, "x", field.ErrorList{
				field.Invalid(field.NewPath("spec", "parallelism"), -1, "must not be negative"),
				field.Required(field.NewPath("spec", "template"), ""),
			}),
			want: []string{"cannot apply Job x from f.yaml, document 2 (line 7):", "\n  spec.parallelism: Invalid value: -1", "\n  spec.template: Required value"},
		},
		"Changed": {
			reason: "An object that exists can be started anew", existed: true,
			err:  apierrors.NewInvalid(jobs, "x", field.ErrorList{field.Forbidden(field.NewPath("spec"), "may not change")}),
			want: []string{"spec: Forbidden: may not change", "--restart"},
		},
		"Webhook":   {reason: "The name of a webhook says nothing to a user", err: hook, want: []string{"(line 7): the name is too long"}},
		"Forbidden": {reason: "Other credentials may help", err: denied, want: []string{"choose others with --context"}},
		"Namespace": {reason: "The two namespaces are named", err: &namespaceError{written: "a", asked: "b"}, want: []string{`"a"`, `"b"`, "remove -n"}},
		"Kind":      {reason: "An unknown kind is told with its version", err: &meta.NoKindMatchError{GroupKind: jobs, SearchedVersions: []string{"v1"}}, want: []string{"no kind Job in apiVersion batch/v1", "api-resources"}},
		"Other":     {reason: "What is not understood is passed on", err: errors.New("connection refused"), want: []string{"connection refused"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &Applier{mapper: meta.NewDefaultRESTMapper(nil)}
			object := manifest.Object{
				Unstructured: &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "x"},
				}},
				Source: manifest.Source{File: "f.yaml", Document: 2, Line: 7},
			}
			err := a.explain(t.Context(), object, tc.existed, tc.err)
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q does not contain %q", tc.reason, err, want)
				}
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("%q does not wrap what the server answered", err)
			}
		})
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	var got []int
	for _, head := range []string{"v1 Namespace", "apiextensions.k8s.io/v1 CustomResourceDefinition", "example.com/v1 Namespace", "batch/v1 Job"} {
		apiVersion, kind, _ := strings.Cut(head, " ")
		got = append(got, rank(manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}}))
	}
	if diff := cmp.Diff([]int{0, 1, 2, 2}, got); diff != "" {
		t.Errorf("ranks (-want +got)\n%s", diff)
	}
}
