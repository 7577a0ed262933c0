// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// define installs a kind of a group of the tests, of any content.
func (l *lab) define(kind string) schema.GroupVersionKind {
	l.t.Helper()
	gvk := schema.GroupVersionKind{Group: "tests.diwan.dev", Version: "v1", Kind: kind}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		l.t.Fatal(err)
	}
	c, err := client.New(cluster.Cluster(l.t).RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		l.t.Fatal(err)
	}
	plural := strings.ToLower(kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
	if err := c.Create(l.t.Context(), crd); err != nil {
		l.t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	l.eventually(func() string {
		if err := l.client.List(l.t.Context(), list, client.InNamespace(l.namespace)); err != nil {
			return err.Error()
		}
		return ""
	})
	l.t.Cleanup(func() {
		if err := c.Delete(context.Background(), crd); err != nil {
			l.t.Error(err)
		}
	})
	return gvk
}

// permit lets trials have a kind.
func (l *lab) permit(kind schema.GroupVersionKind) {
	l.t.Helper()
	l.configure(func(c *katibConfig) {
		c.Init.Controller.TrialResources = append(c.Init.Controller.TrialResources, kind.Kind+"."+kind.Version+"."+kind.Group)
	})
}

// running are the run objects of a kind in the namespace.
func (l *lab) running(kind schema.GroupVersionKind) []unstructured.Unstructured {
	l.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := l.client.List(l.t.Context(), list, client.InNamespace(l.namespace)); err != nil {
		l.t.Fatal(err)
	}
	return list.Items
}

// onlyRun waits for the only run object of a kind.
func (l *lab) onlyRun(kind schema.GroupVersionKind) *unstructured.Unstructured {
	l.t.Helper()
	var run *unstructured.Unstructured
	l.eventually(func() string {
		if runs := l.running(kind); len(runs) == 1 {
			run = &runs[0]
			return ""
		}
		return "a " + kind.Kind
	})
	return run
}

// patchStatus writes the status of a run object.
func (l *lab) patchStatus(run *unstructured.Unstructured, status map[string]any) {
	l.t.Helper()
	after := run.DeepCopy()
	after.Object["status"] = status
	if err := l.client.Status().Patch(l.t.Context(), after, client.MergeFrom(run)); err != nil {
		l.t.Fatal(err)
	}
}

// ofKind makes an experiment's trials of a kind, whose phase says how they end.
func ofKind(kind schema.GroupVersionKind) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate.TrialSpec = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
			"spec": map[string]any{"x": "${trialParameters.x}"},
		}}
		e.Spec.TrialTemplate.SuccessCondition = `status.[@this].#(phase=="Succeeded")#`
		e.Spec.TrialTemplate.FailureCondition = `status.[@this].#(phase=="Failed")#`
	}
}

// own creates an object that another controls.
func (l *lab) own(owner client.Object, kind schema.GroupVersionKind, object client.Object) {
	l.t.Helper()
	object.SetNamespace(l.namespace)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)})
	if err := l.client.Create(l.t.Context(), object); err != nil {
		l.t.Fatal(err)
	}
}

// podOf is a Pod that no node of the tests runs, with labels.
func podOf(name string, labels map[string]string, containers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"diwan.dev/test": "the-test-is-the-node"}}}
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c, Image: "none", Args: []string{"0"}})
	}
	return pod
}

// TestTrialsOfACustomKind runs trials of a kind whose definition comes after
// them, with Pods two owners below the trial.
func TestTrialsOfACustomKind(t *testing.T) {
	l := newLab(t, func(ctx context.Context, _ *corev1.Pod) (string, int32) {
		<-ctx.Done()
		return "", 0
	})
	sweep := schema.GroupVersionKind{Group: "tests.diwan.dev", Version: "v1", Kind: "Sweep"}
	l.permit(sweep)
	e := l.experiment("sweep", 1, 2, ofKind(sweep), func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate.PrimaryPodLabels = map[string]string{"role": "leader"}
	})
	l.eventually(func() string {
		for _, trial := range l.trials() {
			if c := trial.Status.Conditions.Get(v1beta1.ConditionRunning); c != nil && c.Reason == v1beta1.ReasonRunKindMissing {
				return ""
			}
		}
		return "a trial that waits for its kind"
	})
	l.eventually(func() string {
		if l.get(e); e.Status.TrialsPending == 1 && e.Status.TrialsFailed == 0 {
			return ""
		}
		return fmt.Sprintf("that a trial which waits is pending: %+v", e.Status)
	})
	l.define("Sweep")

	first := l.onlyRun(sweep)
	step := l.define("Step")
	middle := &unstructured.Unstructured{}
	middle.SetGroupVersionKind(step)
	middle.SetName(first.GetName() + "-step")
	l.own(first, sweep, middle)
	leader, helper := podOf("leader", map[string]string{"role": "leader"}, "other", "training"), podOf("helper", nil, "training")
	l.own(middle, step, leader)
	l.own(middle, step, helper)
	for _, pod := range []*corev1.Pod{leader, helper} {
		if pod.Labels[v1beta1.LabelTrial] != first.GetName() || pod.Labels[v1beta1.LabelExperiment] != "sweep" {
			t.Errorf("Pod %s has labels %v, want the trial's", pod.Name, pod.Labels)
		}
		container := pod.Spec.Containers[len(pod.Spec.Containers)-1]
		if len(container.Env) != 1 || container.Env[0].Name != v1beta1.EnvTrialName || container.Env[0].Value != first.GetName() {
			t.Errorf("the primary container of Pod %s has %v, want the trial's name", pod.Name, container.Env)
		}
	}
	l.report(first.GetName(), "5")
	l.patchStatus(first, map[string]any{"phase": "Succeeded", "reason": "AllWell", "message": "both Pods ended"})
	l.eventually(func() string {
		for _, trial := range l.trials() {
			if c := trial.Status.Conditions.Get(v1beta1.ConditionSucceeded); trial.Name == first.GetName() && c != nil {
				if c.Reason != "TrialSucceeded. Job reason: AllWell" || trial.Status.Observation.Metrics[0].Min != "5" {
					t.Errorf("the trial ended with %+v", trial.Status)
				}
				return ""
			}
		}
		return "the first trial's end"
	})

	var second *unstructured.Unstructured
	l.eventually(func() string {
		if runs := l.running(sweep); len(runs) == 1 && runs[0].GetName() != first.GetName() {
			second = &runs[0]
			return ""
		}
		return "the second run alone: the first is deleted"
	})
	l.patchStatus(second, map[string]any{"phase": "Failed", "message": "no luck"})
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	if e.Status.TrialsFailed != 1 || e.Status.CurrentOptimalTrial.BestTrialName != first.GetName() {
		t.Errorf("the experiment came to %+v", e.Status)
	}
	l.eventually(func() string {
		if n := len(l.running(sweep)); n > 0 {
			return fmt.Sprintf("the end of %d runs", n)
		}
		return ""
	})
}

// report stores a loss of a trial.
func (l *lab) report(trial, loss string) {
	l.t.Helper()
	err := l.store.Append(l.t.Context(), observation.Trial{Namespace: l.namespace, Name: trial},
		observation.Batch{Source: "test", To: 1, Points: []observation.Point{{Time: metav1.Now().Time, Metric: "loss", Value: loss}}})
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestPodsOfOthersStayAsTheyAre checks that nothing happens to Pods that no
// trial is above.
func TestPodsOfOthersStayAsTheyAre(t *testing.T) {
	l := newLab(t, report)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "owner"}}
	if err := l.client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	alone, owned, orphan := podOf("alone", nil, "training"), podOf("owned", nil, "training"), podOf("orphan", nil, "training")
	alone.Namespace = l.namespace
	if err := l.client.Create(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	l.own(config, kind, owned)
	gone := config.DeepCopy()
	gone.UID = "of-an-earlier-owner"
	l.own(gone, kind, orphan)
	for _, pod := range []*corev1.Pod{alone, owned, orphan} {
		if len(pod.Labels) != 0 || len(pod.Spec.Containers[0].Env) != 0 {
			t.Errorf("Pod %s became %+v", pod.Name, pod)
		}
	}
}

func TestKindThatIsNotPermitted(t *testing.T) {
	l := newLab(t, report)
	e := l.experiment("pods", 1, 1, ofKind(corev1.SchemeGroupVersion.WithKind("Pod")))
	l.waitFor(e, v1beta1.ConditionSucceeded, v1beta1.ReasonExperimentMaxTrialsReached)
	c := l.trials()[0].Status.Conditions.Get(v1beta1.ConditionFailed)
	want := "Trial has failed: Pod.v1. is not a kind that trials may use: add it to init.controller.trialResources"
	if c == nil || !strings.HasPrefix(c.Message, want) {
		t.Errorf("the trial has %+v, want the message %q", l.trials()[0].Status.Conditions, want)
	}
}
