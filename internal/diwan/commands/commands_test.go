// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/diwan"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/cli/check"
	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/manifest"
	"diwan.dev/diwan/internal/platform/cli/progress"
)

func TestIsNews(t *testing.T) {
	t.Parallel()
	house := House()
	for _, c := range []struct {
		reason, kind, why string
		want              bool
	}{
		{"a Pod's troubles are a trial's", "Pod", "FailedMount", true},
		{"a trial waits", "Trial", "RunKindMissing", true},
		{"or its experiment", "Experiment", "ExperimentQuotaExceeded", true},
		{"what is tried again at once is none of the user's", "Trial", "ReconcileError", false},
		{"a Job whose Pods are refused waits for ever", "Job", "FailedCreate", true},
		{"so does a training job", "PyTorchJob", "FailedCreatePod", true},
		{"and a TrainJob", "JobSet", "JobCreationFailed", true},
		{"others are not followed", "Node", "Rebooted", false},
		{"the end of a Job is shown anyway", "Job", "BackoffLimitExceeded", false},
		{"that of a training job too", "PyTorchJob", "PyTorchJobFailed", false},
		{"and of a trial", "Trial", "MetricsUnavailable", false},
	} {
		if got := house.Followed().IsNews(&corev1.Event{Reason: c.why, InvolvedObject: corev1.ObjectReference{Kind: c.kind}}); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// succeededOf is an object of a kind that has succeeded.
func succeededOf(t *testing.T, k follow.Kind) client.Object {
	t.Helper()
	object := k.Object.DeepCopyObject().(client.Object)
	switch o := object.(type) {
	case *kubeflow.Experiment:
		o.Status.Conditions = kubeflow.Conditions{{Type: kubeflow.ConditionSucceeded, Status: corev1.ConditionTrue}}
	case *trainer.OptimizationJob:
		o.Status = &trainer.OptimizationJobStatus{Conditions: []metav1.Condition{{Type: "Complete", Status: "True"}}}
	case *trainer.TrainJob:
		o.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: "True"}}
	case *jobset.JobSet:
		o.Status.Conditions = []metav1.Condition{{Type: jobset.ConditionCompleted, Status: "True"}}
	case *batchv1.Job:
		o.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	case *corev1.Pod:
		o.Status.Phase = corev1.PodSucceeded
	case v1.Job:
		o.State().Conditions = []v1.JobCondition{{Type: v1.JobSucceeded, Status: corev1.ConditionTrue}}
	default:
		t.Fatalf("it is not known how a %s ends", k.Name)
	}
	return object
}

// TestDeleted holds the deletion of an object of any kind to what it means: one that has ended has ended
// so, also where its deletion is all that was seen of the end; any other has failed.
func TestDeleted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	house := House()
	for _, k := range house.Followed() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			work := func() *progress.Work {
				return progress.NewWork(progress.ID{Kind: k.Name, Namespace: "n", Name: "x"}, k.Unit, progress.Objective{}, true, now)
			}
			w := work()
			w.SetStatus(k.Deleted("x", succeededOf(t, k)), now)
			if w.Condition() != progress.ConditionSucceeded {
				t.Errorf("one that is cleaned away after its end is %q, want Succeeded", w.Condition())
			}
			w = work()
			events := w.SetStatus(k.Deleted("x", k.Object), now)
			if len(events) != 1 || events[0].Reason != "Deleted" || w.Condition() != progress.ConditionFailed {
				t.Errorf("the deletion of one that runs is told as %+v", events)
			}
		})
	}
}

// nothing is a cluster in which nothing is.
type nothing struct{}

var errNothing = errors.New("not there")

func (nothing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errNothing
}

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errNothing
}

func TestPodsOf(t *testing.T) {
	t.Parallel()
	house := House()
	const template = "template: {spec: {containers: [{name: m, command: [run]}]}}"
	for name, tc := range map[string]struct {
		reason, in string
		want       []string // place and count
		err        error
	}{
		"Pod":     {reason: "A Pod is one itself", in: "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: m}]}}", want: []string{" 1"}},
		"Job":     {reason: "The Pods of a Job run as they fit", in: "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {parallelism: 9, " + template + "}}", want: []string{"spec.template 1"}},
		"Workers": {reason: "Replicas of a training job run together", in: "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: x}, spec: {pytorchReplicaSpecs: {Master: {replicas: 1, " + template + "}, Worker: {replicas: 3, " + template + "}}}}", want: []string{"spec.pytorchReplicaSpecs.Master.template 1", "spec.pytorchReplicaSpecs.Worker.template 3"}},
		"Elastic": {reason: "An elastic one goes on with fewer", in: "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: x}, spec: {elasticPolicy: {}, pytorchReplicaSpecs: {Worker: {replicas: 3, " + template + "}}}}", want: []string{"spec.pytorchReplicaSpecs.Worker.template 1"}},
		"Trial":   {reason: "An experiment's are those of a trial", in: "{apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {name: x}, spec: {parameters: [{name: p, parameterType: int, feasibleSpace: {min: '1', max: '2'}}], trialTemplate: {trialParameters: [{name: p, reference: p}], trialSpec: {apiVersion: batch/v1, kind: Job, metadata: {labels: {a: '${trialParameters.p}'}}, spec: {" + template + "}}}}}", want: []string{"trial spec.template 1"}},
		"Runtime": {reason: "A TrainJob without a runtime has none", in: "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: x}, spec: {runtimeRef: {name: r}}}", err: errNothing},
		"Other":   {reason: "Other objects run nothing", in: "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}"},
	} {
		objects, err := manifest.Parse([]byte(tc.in), manifest.Source{})
		if err != nil {
			t.Fatal(err)
		}
		sets, err := house.Checked().PodsOf(t.Context(), objects[0].Unstructured, nothing{})
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %s: error %v, want %v", name, tc.reason, err, tc.err)
		}
		var got []string
		for _, s := range sets {
			got = append(got, fmt.Sprint(s.Where, " ", s.Count))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", name, tc.reason, diff)
		}
	}
}

// TestNeeds holds which objects the API server looks at to admit another.
func TestNeeds(t *testing.T) {
	t.Parallel()
	house := House()
	for _, tc := range []struct {
		reason, in string
		want       []check.Reference
	}{
		{"a runtime of the namespace", "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {namespace: a}, spec: {runtimeRef: {kind: TrainingRuntime, name: r}}}", []check.Reference{{Kind: "TrainingRuntime", Namespace: "a", Name: "r"}}},
		{"a runtime for all", "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {namespace: b}, spec: {runtimeRef: {name: c}}}", []check.Reference{{Kind: "ClusterTrainingRuntime", Name: "c"}}},
		{"a template in a ConfigMap", "{apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: a}, spec: {trialTemplate: {configMap: {configMapName: m}}}}", []check.Reference{{Kind: "ConfigMap", Namespace: "a", Name: "m"}}},
		{"in one of another namespace", "{apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: a}, spec: {trialTemplate: {configMap: {configMapName: m, configMapNamespace: b}}}}", []check.Reference{{Kind: "ConfigMap", Namespace: "b", Name: "m"}}},
		{"a template of its own", "{apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: a}, spec: {trialTemplate: {trialSpec: {}}}}", nil},
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(tc.in), &object.Object); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(house.Checked(), func(k check.Kind) bool { return k.GroupVersionKind == object.GroupVersionKind() })
		if diff := cmp.Diff(tc.want, house.Checked()[i].Needs(object)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
		}
	}
}

// TestWings holds the list to that of the operator's domains.
func TestWings(t *testing.T) {
	t.Parallel()
	var got, want []string
	for _, w := range House().Wings {
		d, err := w.Operator.Domain(cli.Lent{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, w.Name, d.Name)
	}
	for _, d := range diwan.Domains(diwan.Options{}) {
		want = append(want, d.Name, d.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("domains of the command line (-want +got)\n%s", diff)
	}
}

// TestLogged names the kinds whose logs can be asked for, each once.
func TestLogged(t *testing.T) {
	t.Parallel()
	house := House()
	want := []string{
		"pod", "trial", "experiment", "optimizationjob", "trainjob", "jobset",
		"tfjob", "pytorchjob", "mpijob", "xgboostjob", "paddlejob", "jaxjob", "mxjob", "job",
	}
	if diff := cmp.Diff(want, house.Logged().Names()); diff != "" {
		t.Errorf("kinds (-want +got)\n%s", diff)
	}
}
