// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
	"diwan.dev/diwan/observation"
	inmemory "diwan.dev/diwan/observation/memory"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason   string
		outcome  trialtemplate.Outcome
		observed bool
		want     verdict
	}{
		"Succeeded": {"the plain case", trialtemplate.Outcome{State: trialtemplate.Succeeded}, true,
			verdict{v1beta1.ConditionSucceeded, "TrialSucceeded", "Trial has succeeded"}},
		"Reason": {"Katib appends the run object's own words",
			trialtemplate.Outcome{State: trialtemplate.Succeeded, Reason: "Done", Message: "all well"}, true,
			verdict{v1beta1.ConditionSucceeded, "TrialSucceeded. Job reason: Done", "Trial has succeeded. Job message: all well"}},
		"Unavailable": {"a run without a value of the objective", trialtemplate.Outcome{State: trialtemplate.Succeeded}, false,
			verdict{v1beta1.ConditionMetricsUnavailable, "MetricsUnavailable", "Metrics are not available"}},
		"Failed": {"metrics do not save a failed run",
			trialtemplate.Outcome{State: trialtemplate.Failed, Reason: "BackoffLimitExceeded"}, true,
			verdict{v1beta1.ConditionFailed, "TrialFailed. Job reason: BackoffLimitExceeded", "Trial has failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, judge(c.outcome, c.observed), cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestRejectionIsShort(t *testing.T) {
	t.Parallel()
	if v := reject("%s", strings.Repeat("ü", 5000)); len(v.message) > 2048 || !strings.HasSuffix(v.message, "ü...") {
		t.Errorf("the message has %d bytes and ends with %q", len(v.message), v.message[len(v.message)-10:])
	}
}

func TestStatusOfALife(t *testing.T) {
	t.Parallel()
	at := func(second int) metav1.Time { return metav1.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	var status v1beta1.TrialStatus
	begin(&status, at(1), at(2))
	begin(&status, at(5), at(6))
	finish(&status, verdict{v1beta1.ConditionSucceeded, "TrialSucceeded", "Trial has succeeded"}, at(7))
	condition := func(t v1beta1.ConditionType, status corev1.ConditionStatus, reason, message string, when metav1.Time) v1beta1.Condition {
		return v1beta1.Condition{Type: t, Status: status, Reason: reason, Message: message, LastUpdateTime: when, LastTransitionTime: when}
	}
	started, ended := at(1), at(7)
	want := v1beta1.TrialStatus{
		StartTime: &started, CompletionTime: &ended,
		Conditions: v1beta1.Conditions{
			condition(v1beta1.ConditionCreated, corev1.ConditionTrue, "TrialCreated", "Trial is created", at(2)),
			condition(v1beta1.ConditionRunning, corev1.ConditionFalse, "TrialRunning", "Trial is running", at(7)),
			condition(v1beta1.ConditionSucceeded, corev1.ConditionTrue, "TrialSucceeded", "Trial has succeeded", at(7)),
		},
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	store := inmemory.New()
	point := func(metric, value string) observation.Point {
		return observation.Point{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Metric: metric, Value: value}
	}
	batch := observation.Batch{Source: "stdout", To: 9, Points: []observation.Point{
		point("loss", "2"), point("loss", "1"), point("accuracy", "0.5"), point("noise", "7"),
	}}
	if err := store.Append(t.Context(), observation.Trial{Namespace: "n", Name: "some"}, batch); err != nil {
		t.Fatal(err)
	}
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "some"}}
	trial.Spec.Objective = &v1beta1.ObjectiveSpec{
		ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"accuracy", "recall"},
		MetricStrategies: []v1beta1.MetricStrategy{{Name: "accuracy", Value: v1beta1.ExtractByMax}, {Name: "loss", Value: v1beta1.ExtractByMin}},
	}
	got, err := observe(t.Context(), store, trial)
	if err != nil {
		t.Fatal(err)
	}
	want := &v1beta1.Observation{Metrics: []v1beta1.Metric{
		{Name: "loss", Min: "1", Max: "2", Latest: "1"},
		{Name: "accuracy", Min: "0.5", Max: "0.5", Latest: "0.5"},
		{Name: "recall", Min: "unavailable", Max: "unavailable", Latest: "unavailable"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observe(): -want, +got:\n%s", diff)
	}
	trial.Name = "silent"
	if got, err := observe(t.Context(), store, trial); got != nil || err != nil {
		t.Errorf("observe() of a silent trial = %v, %v; want nothing", got, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := observe(t.Context(), store, trial); err == nil {
		t.Error("a closed store is taken for a silent trial")
	}
}

func TestBuildAndEvaluateAJob(t *testing.T) {
	t.Parallel()
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e-1", UID: "u"}}
	trial.Spec.PrimaryContainerName = "training"
	trial.Spec.SuccessCondition = `status.conditions.#(type=="Complete")#|#(status=="True")#`
	trial.Spec.FailureCondition = `status.conditions.#(type=="Failed")#|#(status=="True")#`
	trial.Spec.RunSpec = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "training", "image": "i"}},
		}}},
	}}
	run, err := build(trial, jobKind())
	if err != nil {
		t.Fatal(err)
	}
	job := run.(*batchv1.Job)
	if job.Name != "e-1" || job.Namespace != "n" || job.Labels[v1beta1.LabelTrial] != "e-1" || !owns(trial, job) ||
		job.Spec.Template.Labels[v1beta1.LabelTrial] != "e-1" {
		t.Errorf("the Job is %+v", job)
	}
	for _, c := range []struct {
		conditions []batchv1.JobCondition
		want       trialtemplate.State
	}{
		{nil, trialtemplate.Running},
		{[]batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}, trialtemplate.Succeeded},
		{[]batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}}, trialtemplate.Running},
		{[]batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}, trialtemplate.Failed},
	} {
		job.Status.Conditions = c.conditions
		if got, err := evaluate(trial, job); err != nil || got.State != c.want {
			t.Errorf("a Job with %v is %v, %v; want %v", c.conditions, got.State, err, c.want)
		}
	}
	trial.Spec.RunSpec.Object["spec"] = map[string]any{"parallelism": "two", "template": trial.Spec.RunSpec.Object["spec"].(map[string]any)["template"]}
	if _, err := build(trial, jobKind()); err == nil {
		t.Error("a text is taken for a number")
	}
}

func TestSlim(t *testing.T) {
	t.Parallel()
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	trial.Spec.RunSpec = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{}}}
	slim := func() *v1beta1.Trial {
		got, err := Slim(trial.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		return got.(*v1beta1.Trial)
	}
	if got := slim(); got.ManagedFields != nil || got.Spec.RunSpec.Object["spec"] == nil {
		t.Errorf("of a trial that goes on there is left %+v", got)
	}
	trial.Status.Conditions.Set(metav1.Time{}, v1beta1.ConditionFailed, corev1.ConditionTrue, "", "")
	if got := slim(); got.Spec.RunSpec.Object["spec"] != nil || got.Spec.RunSpec.GroupVersionKind() != jobKind() {
		t.Errorf("of a trial that ended there is left %+v", got.Spec.RunSpec)
	}
}
