// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// engine stands in for what runs the objects of a kind: one Pod after another,
// and then it writes down how it went.
type engine struct {
	resource schema.GroupVersionResource
	kind     string
	// pods are those of an object, in order.
	pods func(run *unstructured.Unstructured) []step
	// between, if set, is a kind that stands between the object and its Pods.
	between *schema.GroupVersionKind
	// status is what it writes in the end.
	status func(ok bool) map[string]any
}

// step is a Pod of an engine.
type step struct {
	container, image string
	command          []any
	labels           map[string]any
}

var (
	argo = engine{
		resource: schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"}, kind: "Workflow",
		pods: func(run *unstructured.Unstructured) []step {
			templates, _, _ := unstructured.NestedSlice(run.Object, "spec", "templates")
			container := templates[2].(map[string]any)["container"].(map[string]any)
			labels, _, _ := unstructured.NestedMap(templates[2].(map[string]any), "metadata", "labels")
			return []step{
				{container: "main", image: "python:alpine3.6", command: []any{"echo", "loss=0"}},
				{container: "main", image: container["image"].(string), command: filled(container["command"], map[string]string{"{{inputs.parameters.epochs}}": "1"}), labels: labels},
			}
		},
		status: func(ok bool) map[string]any {
			if ok {
				return map[string]any{"phase": "Succeeded"}
			}
			return map[string]any{"phase": "Failed"}
		},
	}
	tekton = engine{
		resource: schema.GroupVersionResource{Group: "tekton.dev", Version: "v1beta1", Resource: "pipelineruns"}, kind: "PipelineRun",
		between: &schema.GroupVersionKind{Group: "tekton.dev", Version: "v1beta1", Kind: "TaskRun"},
		pods: func(run *unstructured.Unstructured) []step {
			tasks, _, _ := unstructured.NestedSlice(run.Object, "spec", "pipelineSpec", "tasks")
			parameters, _, _ := unstructured.NestedSlice(run.Object, "spec", "params")
			steps, _, _ := unstructured.NestedSlice(tasks[1].(map[string]any), "taskSpec", "steps")
			first := steps[0].(map[string]any)
			lr, _ := parameters[0].(map[string]any)["value"].(string)
			return []step{{
				container: "step-model-training", image: first["image"].(string), labels: map[string]any{"tekton.dev/pipelineTask": "model-training"},
				command: filled(first["command"], map[string]string{"$(params.lr)": lr, "$(params.epochs)": "1"}),
			}}
		},
		status: func(ok bool) map[string]any {
			status := "True"
			if !ok {
				status = "False"
			}
			return map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": status}}}
		},
	}
)

// filled puts values into a command.
func filled(command any, values map[string]string) []any {
	var out []any
	for _, word := range command.([]any) {
		text := word.(string)
		for from, to := range values {
			text = strings.ReplaceAll(text, from, to)
		}
		out = append(out, text)
	}
	return out
}

// run works until ctx ends.
func (e engine) run(ctx context.Context, c dynamic.Interface) error {
	for ctx.Err() == nil {
		runs, err := c.Resource(e.resource).List(ctx, metav1.ListOptions{})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		for i := range runs.Items {
			if err := e.advance(ctx, c, &runs.Items[i]); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// advance makes the next step of an object.
func (e engine) advance(ctx context.Context, c dynamic.Interface, run *unstructured.Unstructured) error {
	if run.Object["status"] != nil || run.GetDeletionTimestamp() != nil {
		return nil
	}
	for i, step := range e.pods(run) {
		name := fmt.Sprintf("%s-%d", run.GetName(), i)
		pod, err := c.Resource(pods).Namespace(run.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return e.begin(ctx, c, run, name, step)
		}
		if err != nil {
			return err
		}
		switch phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); phase {
		case "Failed":
			return e.finish(ctx, c, run, false)
		case "Succeeded":
		default:
			return nil
		}
	}
	return e.finish(ctx, c, run, true)
}

// begin creates a Pod, and what is between it and the object.
func (e engine) begin(ctx context.Context, c dynamic.Interface, run *unstructured.Unstructured, name string, s step) error {
	owner, kind := run, run.GroupVersionKind()
	if e.between != nil {
		middle := &unstructured.Unstructured{}
		middle.SetGroupVersionKind(*e.between)
		middle.SetName(name)
		middle.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)})
		resource := e.between.GroupVersion().WithResource(strings.ToLower(e.between.Kind) + "s")
		made, err := c.Resource(resource).Namespace(run.GetNamespace()).Create(ctx, middle, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		owner, kind = made, *e.between
	}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": s.labels},
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{
			map[string]any{"name": s.container, "image": s.image, "command": s.command}}},
	}}
	pod.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)})
	_, err := c.Resource(pods).Namespace(run.GetNamespace()).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (e engine) finish(ctx context.Context, c dynamic.Interface, run *unstructured.Unstructured, ok bool) error {
	after := run.DeepCopy()
	after.Object["status"] = e.status(ok)
	_, err := c.Resource(e.resource).Namespace(run.GetNamespace()).Update(ctx, after, metav1.UpdateOptions{})
	return err
}

// definition is the CRD of a kind without a schema.
func definition(group, version, kind string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %s, plural: %[1]s}
  versions: [{name: %[4]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, group, kind, version)
}

// TestOtherKinds runs Katib's examples whose trials are workflows and pipelines,
// with Pods of the program in place of what would run them.
func TestOtherKinds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	table := fmt.Sprintf("images:\n- {image: '*', runtime: process}\n- image: ghcr.io/kubeflow/katib/pytorch-mnist-cpu\n  files: {/opt/pytorch-mnist: %s}\n  workingDir: /opt/pytorch-mnist\n", abs(t, "testdata/mnist"))
	if err := os.WriteFile(filepath.Join(s.home, "images.yaml"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	s.apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: argo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: katib-config, namespace: kubeflow}
data:
  katib-config.yaml: |
    init:
      controller:
        trialResources: [Workflow.v1alpha1.argoproj.io, PipelineRun.v1beta1.tekton.dev]
`+definition("argoproj.io", "v1alpha1", "Workflow")+definition("tekton.dev", "v1beta1", "PipelineRun")+definition("tekton.dev", "v1beta1", "TaskRun"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	for _, e := range []engine{argo, tekton} {
		eventually(t, time.Minute, func() error {
			_, err := s.client().Resource(e.resource).List(ctx, metav1.ListOptions{})
			return err
		})
		go func() { ended <- e.run(ctx, s.client()) }()
	}
	s.parts(t, func(part part) {
		for _, name := range []string{"argo-workflow", "tekton-pipeline-run"} {
			part(name, func(t *testing.T, s *server) {
				s.succeeds(t, filepath.Join(root, "examples", "katib", "other-kinds", name+".yaml"))
			})
		}
	})
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
