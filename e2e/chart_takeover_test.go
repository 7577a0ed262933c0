// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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
)

// katibs is what Katib's controller has left of an experiment of six trials: two
// have succeeded, one runs, one has been created and its Job not yet. GO, DIARY
// and REPORT are paths. Katib's Jobs bear no label, and its Pods get theirs from
// its webhook. Each document names its owner, if any, in the annotation "owner".
const katibs = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: x, finalizers: [update-prometheus-metrics]}
spec:
  objective: &objective {type: minimize, objectiveMetricName: loss, metricStrategies: [{name: loss, value: min}]}
  algorithm: {algorithmName: random}
  resumePolicy: Never
  maxTrialCount: 6
  parallelTrialCount: 2
  maxFailedTrialCount: 1
  metricsCollectorSpec: {collector: {kind: Push}}
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0", max: "1", distribution: uniform}}]
  trialTemplate:
    primaryContainerName: main
    successCondition: &success status.conditions.#(type=="Complete")#|#(status=="True")#
    failureCondition: &failure status.conditions.#(type=="Failed")#|#(status=="True")#
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: report, args: [DIARY, "loss=${trialParameters.x}"]}]}}}
status:
  startTime: "2026-01-01T00:00:00Z"
  conditions:
  - {type: Created, status: "True", reason: ExperimentCreated, message: Experiment is created, lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Running, status: "True", reason: ExperimentRunning, message: Experiment is running, lastUpdateTime: "2026-01-01T00:01:00Z", lastTransitionTime: "2026-01-01T00:01:00Z"}
  currentOptimalTrial: {bestTrialName: x-aaaaaaa1, parameterAssignments: [{name: x, value: "0.1"}], observation: {metrics: [{name: loss, min: "-1", max: "3", latest: "-1"}]}}
  succeededTrialList: [x-aaaaaaa1, x-aaaaaaa2]
  runningTrialList: [x-aaaaaaa3]
  pendingTrialList: [x-aaaaaaa4]
  trials: 4
  trialsSucceeded: 2
  trialsRunning: 1
  trialsPending: 1
---
apiVersion: kubeflow.org/v1beta1
kind: Suggestion
metadata: {name: x, annotations: {owner: Experiment/x}}
spec: {algorithm: {algorithmName: random}, requests: 4, resumePolicy: Never}
status:
  suggestionCount: 4
  suggestions:
  - {name: x-aaaaaaa1, parameterAssignments: [{name: x, value: "0.1"}]}
  - {name: x-aaaaaaa2, parameterAssignments: [{name: x, value: "0.2"}]}
  - {name: x-aaaaaaa3, parameterAssignments: [{name: x, value: "0.3"}]}
  - {name: x-aaaaaaa4, parameterAssignments: [{name: x, value: "0.4"}]}
  startTime: "2026-01-01T00:00:00Z"
  conditions:
  - {type: Created, status: "True", reason: SuggestionCreated, message: Suggestion is created, lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: DeploymentReady, status: "True", reason: DeploymentReady, message: Deployment is ready, lastUpdateTime: "2026-01-01T00:00:30Z", lastTransitionTime: "2026-01-01T00:00:30Z"}
  - {type: Running, status: "True", reason: SuggestionRunning, message: Suggestion is running, lastUpdateTime: "2026-01-01T00:01:00Z", lastTransitionTime: "2026-01-01T00:01:00Z"}
---
apiVersion: v1
kind: Service
metadata: {name: x-random, annotations: {owner: Suggestion/x}, labels: &algorithm {katib.kubeflow.org/deployment: x-random, katib.kubeflow.org/experiment: x, katib.kubeflow.org/suggestion: x}}
spec: {selector: *algorithm, ports: [{name: katib-api, port: 6789}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x-random, annotations: {owner: Suggestion/x}, labels: &algorithm {katib.kubeflow.org/deployment: x-random, katib.kubeflow.org/experiment: x, katib.kubeflow.org/suggestion: x}}
spec: {replicas: 1, selector: {matchLabels: *algorithm}, template: {metadata: {labels: *algorithm}, spec: {containers: [{name: suggestion, image: algorithm, command: [sleep, "600"]}]}}}
`

// katibsTrial is one of Katib's, with what its status adds to the start.
const katibsTrial = `
---
apiVersion: kubeflow.org/v1beta1
kind: Trial
metadata: {name: x-aaaaaaa%[1]d, annotations: {owner: Experiment/x}, labels: {katib.kubeflow.org/experiment: x}, finalizers: [update-prometheus-metrics, clean-metrics-in-db]}
spec:
  objective: {type: minimize, objectiveMetricName: loss, metricStrategies: [{name: loss, value: min}]}
  parameterAssignments: [{name: x, value: "0.%[1]d"}]
  metricsCollector: {collector: {kind: Push}}
  primaryContainerName: main
  successCondition: status.conditions.#(type=="Complete")#|#(status=="True")#
  failureCondition: status.conditions.#(type=="Failed")#|#(status=="True")#
  runSpec:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: x-aaaaaaa%[1]d, namespace: taken}
    spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: report, args: [DIARY, "loss=0.%[1]d"]}]}}}
status:
  startTime: "2026-01-01T00:02:00Z"
  conditions:
  - {type: Created, status: "True", reason: TrialCreated, message: Trial is created, lastUpdateTime: "2026-01-01T00:02:00Z", lastTransitionTime: "2026-01-01T00:02:00Z"}
`

const (
	hasSucceeded = `  - {type: Running, status: "False", reason: TrialRunning, message: Trial is running, lastUpdateTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"}
  - {type: Succeeded, status: "True", reason: TrialSucceeded, message: Trial has succeeded, lastUpdateTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"}
  completionTime: "2026-01-01T00:03:00Z"
  observation: {metrics: [{name: loss, min: "%[1]d", max: "3", latest: "%[1]d"}]}
`
	hasBegun = `  - {type: Running, status: "True", reason: TrialRunning, message: Trial is running, lastUpdateTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: x-aaaaaaa3, annotations: {owner: Trial/x-aaaaaaa3}}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {katib.kubeflow.org/trial: x-aaaaaaa3, katib.kubeflow.org/experiment: x}}
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: report
        command: [sh, -c, "until [ -e GO ]; do sleep 0.1; done; exec REPORT DIARY loss=0.3"]
        env: [{name: REPORTING, value: "1"}, {name: KATIB_TRIAL_NAME, valueFrom: {fieldRef: {fieldPath: "metadata.labels['katib.kubeflow.org/trial']"}}}]
`
)

// trainingOperators is what the training operator has left of a job that runs.
const trainingOperators = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: job}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Master: &replica {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: trains, command: [sh, -c, "exit 1"]}]}}}
    Worker: *replica
status:
  startTime: "2026-01-01T00:00:00Z"
  conditions:
  - {type: Created, status: "True", reason: PyTorchJobCreated, message: PyTorchJob job is created., lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Running, status: "True", reason: PyTorchJobRunning, message: PyTorchJob job is running., lastUpdateTime: "2026-01-01T00:01:00Z", lastTransitionTime: "2026-01-01T00:01:00Z"}
  replicaStatuses:
    Master: {active: 1, selector: "training.kubeflow.org/job-name=job,training.kubeflow.org/operator-name=pytorchjob-controller,training.kubeflow.org/replica-type=master"}
    Worker: {active: 1, selector: "training.kubeflow.org/job-name=job,training.kubeflow.org/operator-name=pytorchjob-controller,training.kubeflow.org/replica-type=worker"}
`

// trainingOperatorsReplica is a Pod and a Service of it.
const trainingOperatorsReplica = `
---
apiVersion: v1
kind: Pod
metadata: {name: job-%[1]s-0, annotations: {owner: PyTorchJob/job}, labels: &replica {training.kubeflow.org/job-name: job, training.kubeflow.org/operator-name: pytorchjob-controller, training.kubeflow.org/replica-type: %[1]s, training.kubeflow.org/replica-index: "0"%[2]s}}
spec:
  restartPolicy: OnFailure
  containers: [{name: pytorch, image: trains, command: [sh, -c, "echo begin job-%[1]s >>DIARY; until [ -e GO ]; do sleep 0.1; done; echo end job-%[1]s >>DIARY"]}]
---
apiVersion: v1
kind: Service
metadata: {name: job-%[1]s-0, annotations: {owner: PyTorchJob/job}, labels: &replica {training.kubeflow.org/job-name: job, training.kubeflow.org/operator-name: pytorchjob-controller, training.kubeflow.org/replica-type: %[1]s, training.kubeflow.org/replica-index: "0"%[2]s}}
spec: {clusterIP: None, selector: *replica, ports: [{name: pytorchjob-port, port: 23456}]}
`

// testTakeover leaves what Katib's and the training operator's controllers leave
// when they are gone in the middle of their work, has Diwan installed by install,
// and wants it to go on with all of it: nothing begins again, nothing is lost.
func (f *foreign) testTakeover(t *testing.T, install func()) {
	f.namespace("taken")
	dir := t.TempDir()
	diary, proceed := filepath.Join(dir, "diary"), filepath.Join(dir, "go")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := katibs
	for i, more := range []string{fmt.Sprintf(hasSucceeded, -1), fmt.Sprintf(hasSucceeded, 2), hasBegun, ""} {
		text += fmt.Sprintf(katibsTrial, i+1) + more
	}
	text += "---" + trainingOperators +
		fmt.Sprintf(trainingOperatorsReplica, "master", ", training.kubeflow.org/job-role: master") + fmt.Sprintf(trainingOperatorsReplica, "worker", "")
	before := f.leave(t, strings.NewReplacer("DIARY", diary, "GO", proceed, "REPORTING", reporting, "REPORT", self).Replace(text))

	f.follow(t, "takeover-services")
	install()
	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]unstructured.Unstructured{}
	for _, trial := range f.succeeded(t, "taken", "x", 2*time.Minute) {
		all[trial.GetName()] = trial
		if _, _, ok := condition(&trial, "Succeeded"); !ok {
			t.Errorf("trial %s has not succeeded: %v", trial.GetName(), trial.Object["status"])
		}
	}
	if len(all) != 6 {
		t.Errorf("there are %d trials, want Katib's four and two more", len(all))
	}
	for i := range 4 {
		key := fmt.Sprintf("Trial/x-aaaaaaa%d", i+1)
		if now := all[before[key].GetName()]; now.GetUID() != before[key].GetUID() {
			t.Errorf("%s is another one", key)
		}
	}
	f.checkTakenOver(t, before)
	eventually(t, time.Minute, func() error {
		job, err := f.any.Resource(gvr("kubeflow.org/v1", "pytorchjobs")).Namespace("taken").Get(t.Context(), "job", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, _, ok := condition(job, "Succeeded"); !ok {
			return fmt.Errorf("the job has not succeeded: %v", job.Object["status"])
		}
		return nil
	})
	checkDiary(t, diary, 4+2) // two of Katib's trials were over
	f.shell(t, "kubectl -n taken delete experiment x --timeout 1m")
}

// checkTakenOver looks at what belongs to the experiment that was taken over.
func (f *foreign) checkTakenOver(t *testing.T, before map[string]*unstructured.Unstructured) {
	t.Helper()
	e, err := f.any.Resource(experiments).Namespace("taken").Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if best, _, _ := unstructured.NestedString(e.Object, "status", "currentOptimalTrial", "bestTrialName"); best != "x-aaaaaaa1" {
		t.Errorf("the best trial is %s, want Katib's first: %v", best, e.Object["status"])
	}
	for _, replica := range []string{"master", "worker"} {
		pod, err := f.any.Resource(gvr("v1", "pods")).Namespace("taken").Get(t.Context(), "job-"+replica+"-0", metav1.GetOptions{})
		if err != nil || pod.GetUID() != before["Pod/job-"+replica+"-0"].GetUID() {
			t.Errorf("the Pod of the %s is another one (%v)", replica, err)
		}
	}
	eventually(t, time.Minute, func() error {
		for _, resource := range []schema.GroupVersionResource{gvr("apps/v1", "deployments"), gvr("v1", "services")} {
			if _, err := f.any.Resource(resource).Namespace("taken").Get(t.Context(), "x-random", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("of what ran Katib's algorithm is left: %s (%v)", resource.Resource, err)
			}
		}
		return nil
	})
}

// leave creates objects with their status in the namespace "taken", and returns
// them by kind and name.
func (f *foreign) leave(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	left := map[string]*unstructured.Unstructured{}
	for _, document := range strings.Split(text, "\n---\n") {
		object, err := decode(document)
		if err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if owner := left[object.GetAnnotations()["owner"]]; owner != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
		}
		object.SetAnnotations(nil)
		status, key := object.Object["status"], object.GetKind()+"/"+object.GetName()
		client := f.any.Resource(gvr(object.GetAPIVersion(), strings.ToLower(object.GetKind())+"s")).Namespace("taken")
		if object, err = client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if status != nil {
			object.Object["status"] = status
			if object, err = client.UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
		}
		left[key] = object
	}
	return left
}
