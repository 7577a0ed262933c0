// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/config/crd"
	"diwan.dev/diwan/examples/domain/retention"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/domain/domaintest"
	"diwan.dev/diwan/internal/platform/operator"
	"diwan.dev/diwan/internal/testing/clustertest"
)

var cluster clustertest.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// definition is what `make generate` has made of the types.
func definition() *apiextensionsv1.CustomResourceDefinition {
	text, err := os.ReadFile("crd/example.com_retentions.yaml")
	if err != nil {
		panic(err)
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		panic(err)
	}
	return d
}

func TestDomain(t *testing.T) {
	t.Parallel()
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	domaintest.Run(t, retention.Domain(), domaintest.Tree{Definitions: append(definitions, definition()), Docs: "../../../docs", Examples: ".."})
}

func TestDue(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ended := func(name string, before time.Duration) v1beta1.Experiment {
		var e v1beta1.Experiment
		e.Name, e.Status.CompletionTime = name, &metav1.Time{Time: noon.Add(-before)}
		return e
	}
	due, next := retention.Due([]v1beta1.Experiment{{}, ended("old", 2*time.Hour), ended("new", time.Minute), ended("newer", 0)}, time.Hour, noon)
	if len(due) != 1 || due[0].Name != "old" || next != 59*time.Minute {
		t.Errorf("%d are due, the next after %v; want the old one, and 59m0s", len(due), next)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]string{"1h": "", "0s": "", "-1h": "spec.after: Invalid value: \"-1h0m0s\": must be 0s or more", "soon": "cannot read the object"} {
		raw := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Retention","metadata":{"name":"r"},"spec":{"after":%q}}`, after)
		answer := retention.Validate(t.Context(), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(raw)}}})
		if answer.Allowed != (want == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, want) {
			t.Errorf("%s: %+v, want %q", after, answer.AdmissionResponse, want)
		}
	}
}

// TestRetention has an experiment go that has ended, and one stay that has not.
func TestRetention(t *testing.T) {
	t.Parallel()
	c, namespace := cluster.Namespace(t)
	scheme, err := domain.NewScheme(retention.Domain())
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), definition()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kind is not served", func() bool {
		return api.List(t.Context(), &retention.RetentionList{}) == nil
	})
	operate(t, c.RESTConfig())
	create := func(o client.Object) error {
		o.SetNamespace(namespace)
		return api.Create(t.Context(), o)
	}
	experiment := func(name string, suspended bool) *v1beta1.Experiment {
		e := &v1beta1.Experiment{}
		if err := yaml.UnmarshalStrict([]byte(manifest), e); err != nil {
			t.Fatal(err)
		}
		e.Name, e.Spec.Suspend = name, suspended
		if err := create(e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	stays, goes := experiment("stays", true), experiment("goes", false)
	if err := create(&retention.Retention{ObjectMeta: metav1.ObjectMeta{Name: "at-once"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an experiment that has ended is still there", func() bool {
		return apierrors.IsNotFound(api.Get(t.Context(), client.ObjectKeyFromObject(goes), goes))
	})
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(stays), stays); err != nil {
		t.Errorf("an experiment that has not ended: %v", err)
	}
}

// operate runs an operator of the domain until the test ends.
func operate(t *testing.T, config *rest.Config) {
	t.Helper()
	o, err := operator.New(operator.DefaultConfig(config, retention.Domain()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// eventually waits until something is so.
func eventually(t *testing.T, missing string, so func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return so(), nil })
	if err != nil {
		t.Fatalf("%s: %v", missing, err)
	}
}

const manifest = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 1
  parallelTrialCount: 1
  parameters:
  - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: any, command: [sh, -c, "echo loss=${trialParameters.x}"]}]}}}
`
