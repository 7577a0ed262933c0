// SPDX-License-Identifier: Apache-2.0

package optimizationjob

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

const manifest = `
metadata: {name: tune, namespace: ns, uid: u}
spec:
  objectives: [{metric: loss}]
  searchAlgorithm: {random: {seed: 7}}
  numTrials: 5
  parallelTrials: 2
  parameters:
  - {name: learning-rate, searchSpace: {logUniform: {min: "0.001", max: "0.1"}}}
  - {name: layers, searchSpace: {uniform: {min: "1", max: "9", type: Int}}}
  - {name: optimizer, searchSpace: {categorical: {choices: [sgd, adam]}}}
  trainJobTemplate:
    metadata: {labels: {team: vision}}
    spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2, env: [{name: A, value: b}]}}
`

func newJob(t *testing.T, text string) *v1alpha1.OptimizationJob {
	t.Helper()
	job := &v1alpha1.OptimizationJob{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		t.Fatal(err)
	}
	return job
}

func TestExperimentOfAJob(t *testing.T) {
	t.Parallel()
	e, err := NewExperiment(newJob(t, manifest))
	if err != nil {
		t.Fatal(err)
	}
	want := &v1beta1.ExperimentSpec{}
	err = yaml.UnmarshalStrict([]byte(`
objective: {type: minimize, objectiveMetricName: loss}
algorithm: {algorithmName: random, algorithmSettings: [{name: random_state, value: "7"}]}
maxTrialCount: 5
parallelTrialCount: 2
parameters:
- {name: learning-rate, parameterType: double, feasibleSpace: {min: "0.001", max: "0.1", distribution: logUniform}}
- {name: layers, parameterType: int, feasibleSpace: {min: "1", max: "9", distribution: uniform}}
- {name: optimizer, parameterType: categorical, feasibleSpace: {list: [sgd, adam]}}
trialTemplate:
  retain: true
  primaryContainerName: node
  trialParameters: [{name: p0, reference: learning-rate}, {name: p1, reference: layers}, {name: p2, reference: optimizer}]
  trialSpec:
    apiVersion: trainer.kubeflow.org/v1alpha1
    kind: TrainJob
    metadata:
      labels: {team: vision}
      annotations:
        parameter.trainer.kubeflow.org/learning_rate: ${trialParameters.p0}
        parameter.trainer.kubeflow.org/layers: ${trialParameters.p1}
        parameter.trainer.kubeflow.org/optimizer: ${trialParameters.p2}
    spec:
      runtimeRef: {name: torch-distributed}
      trainer:
        numNodes: 2
        env:
        - {name: A, value: b}
        - {name: KUBEFLOW_TRAINER_OPT_LEARNING_RATE, value: "${trialParameters.p0}"}
        - {name: KUBEFLOW_TRAINER_OPT_LAYERS, value: "${trialParameters.p1}"}
        - {name: KUBEFLOW_TRAINER_OPT_OPTIMIZER, value: "${trialParameters.p2}"}
`), want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &e.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(e.OwnerReferences) != 1 || e.OwnerReferences[0].Kind != "OptimizationJob" || e.Name != "tune" {
		t.Errorf("the Experiment is %+v", e.ObjectMeta)
	}
	job := newJob(t, strings.Replace(manifest, "name: layers", "name: learning_rate", 1))
	if _, err := NewExperiment(job); err == nil || !strings.Contains(err.Error(), "same environment variable, KUBEFLOW_TRAINER_OPT_LEARNING_RATE") {
		t.Errorf("two parameters of one variable: %v", err)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := &v1beta1.Experiment{}
	job := newJob(t, manifest)
	job.Status = statusOf(job, e, now)
	if finished(job.Status) || job.Status.Result != nil || job.Status.Conditions[0].Type != "Created" {
		t.Errorf("a search that has begun shows %+v", job.Status)
	}
	none := &v1beta1.Experiment{Spec: v1beta1.ExperimentSpec{Objective: &v1beta1.ObjectiveSpec{ObjectiveMetricName: "loss"}}, Status: v1beta1.ExperimentStatus{Trials: 5}}
	none.Status.Conditions.Set(metav1.NewTime(now), v1beta1.ConditionSucceeded, corev1.ConditionTrue, v1beta1.ReasonExperimentMaxTrialsReached, "m")
	if failed := statusOf(job, none, now).Conditions; len(failed) != 2 || failed[1].Type != "Failed" || failed[1].Message != "None of the 5 trials succeeded and reported loss: see its Trials and TrainJobs" {
		t.Errorf("a search without a result shows %+v, want that it failed", failed)
	}
	e.Status.CurrentOptimalTrial.BestTrialName = "tune-1"
	e.Status.CurrentOptimalTrial.ParameterAssignments = []v1beta1.ParameterAssignment{{Name: "layers", Value: "3"}}
	e.Status.Conditions.Set(metav1.NewTime(now), v1beta1.ConditionSucceeded, corev1.ConditionTrue, v1beta1.ReasonExperimentMaxTrialsReached, "m")
	job.Status = statusOf(job, e, now)
	want := &v1alpha1.Result{TrainJobName: "tune-1", Parameters: []v1alpha1.ParameterAssignment{{Name: "layers", Value: "3"}}}
	if diff := cmp.Diff(want, job.Status.Result); diff != "" || !finished(job.Status) || job.Status.Conditions[1].Reason != "MaxTrialsReached" {
		t.Errorf("at its end it shows %+v\n%s", job.Status, diff)
	}
}
