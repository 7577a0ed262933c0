// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tuned runs the example that tunes a PyTorchJob. Its first two trials cannot be
// stopped, and those with a small step would train for minutes if they were not.
func (s *server) tuned(t *testing.T) {
	t.Helper()
	s.succeeds(t, root+"/examples/training/tune-pytorch.yaml")
	list := s.trialsOf("tune-pytorch")
	if len(list) != 6 {
		t.Errorf("%d trials exist, want 6", len(list))
	}
	small := 0
	for _, trial := range list {
		lr, err := strconv.ParseFloat(strings.TrimPrefix(assignments(&trial), "lr="), 64)
		if err != nil {
			t.Fatal(err)
		}
		_, _, stopped := condition(&trial, "EarlyStopped")
		_, _, succeeded := condition(&trial, "Succeeded")
		if stopped == succeeded || lr < 0.002 && !stopped || lr > 0.05 && !succeeded {
			t.Errorf("trial %s with lr=%v: %v", trial.GetName(), lr, trial.Object["status"])
		}
		if lr < 0.002 {
			small++
			s.vanishes(t, "katib.kubeflow.org/trial="+trial.GetName())
		}
	}
	if small == 0 {
		t.Error("no trial had a small step: that shows nothing")
	}
}

// parallelTrial is a kind whose objects have several Pods.
type parallelTrial struct {
	kind, container string
	// spec is the run object's. In it POD(n) stands for the template of a Pod and
	// COMMAND(n) for a command, of the Pod that reports where n is 0. A variable for
	// n tells Pods of one template apart.
	spec string
	// retain keeps the run object, without Pods.
	retain bool
}

var parallelTrials = []parallelTrial{
	{"kubeflow.org/v1 PyTorchJob", "pytorch", `{pytorchReplicaSpecs: {Master: {replicas: 1, template: POD(0)}, Worker: {replicas: 2, template: POD(1)}}}`, false},
	{"kubeflow.org/v1 TFJob", "tensorflow", `{tfReplicaSpecs: {Chief: {replicas: 1, template: POD(0)}, PS: {replicas: 1, template: POD(1)}, Worker: {replicas: 1, template: POD(1)}}}`, true},
	{"kubeflow.org/v1 XGBoostJob", "xgboost", `{xgbReplicaSpecs: {Master: {replicas: 1, template: POD(0)}, Worker: {replicas: 1, template: POD(1)}}}`, true},
	{"kubeflow.org/v1 JAXJob", "jax", `{jaxReplicaSpecs: {Worker: {replicas: 2, template: POD($PROCESS_ID)}}}`, false},
	{"kubeflow.org/v1 PaddleJob", "paddle", `{paddleReplicaSpecs: {Master: {replicas: 1, template: POD(0)}, Worker: {replicas: 1, template: POD(1)}}}`, true},
	{"kubeflow.org/v1 MPIJob", "mpi", `{mpiReplicaSpecs: {Launcher: {replicas: 1, template: POD(0)}, Worker: {replicas: 1, template: POD(1)}}}`, true},
	{"kubeflow.org/v2beta1 MPIJob", "mpi", `{mpiReplicaSpecs: {Launcher: {replicas: 1, template: POD(0)}, Worker: {replicas: 1, template: POD(1)}}}`, false},
	{"kubeflow.org/v1 MXJob", "mxnet", `{jobMode: MXTrain, mxReplicaSpecs: {Scheduler: {replicas: 1, template: POD(1)}, Server: {replicas: 1, template: POD(1)}, Worker: {replicas: 2, template: POD($DMLC_WORKER_ID)}}}`, false},
	{"trainer.kubeflow.org/v1alpha1 TrainJob", "node", `{runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2, command: COMMAND($PET_NODE_RANK)}}`, true},
}

var placeholder = regexp.MustCompile(`(POD|COMMAND)\(([^)]+)\)`)

// name is the experiment's.
func (p parallelTrial) name() string {
	return strings.ToLower(path.Base(strings.ReplaceAll(p.kind, " ", "-"))) // v1-tfjob
}

// manifest is an experiment with two trials, the second of which is to be
// stopped. Each of their Pods has a child that does not want to end, and all but
// the first print what would stop any trial.
func (p parallelTrial) manifest() string {
	api, kind, _ := strings.Cut(p.kind, " ")
	spec := placeholder.ReplaceAllStringFunc(p.spec, func(found string) string {
		match := placeholder.FindStringSubmatch(found)
		command := fmt.Sprintf("[sh, -c, %q]", `(trap '' TERM; sleep 1000) &
			if [ `+match[2]+` = 0 ]; then echo loss=${trialParameters.x}; else echo loss=777; fi
			if `+great+`; then wait; fi; kill -9 $!; exit 0`)
		if match[1] == "COMMAND" {
			return command
		}
		return fmt.Sprintf("{spec: {terminationGracePeriodSeconds: 1, containers: [{name: %s, image: i, command: %s}]}}", p.container, command)
	})
	return fmt.Sprintf(`
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %s}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: grid}
  maxTrialCount: 2
  parallelTrialCount: 2
  parameters:
  - {name: x, parameterType: double, feasibleSpace: {min: "0.25", max: "0.75", step: "0.5"}}
%s
  trialTemplate:
    primaryContainerName: %s
    retain: %t
    trialParameters: [{name: x, reference: x}]
    trialSpec: {apiVersion: %s, kind: %s, spec: %s}
`, p.name(), threshold, p.container, p.retain, api, kind, spec)
}

// TestStoppedTrainings stops trials early that have several Pods: all of these
// end, with their children, and only the first of them is listened to.
func TestStoppedTrainings(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, p := range parallelTrials {
		s.apply(t, p.manifest())
	}
	for _, p := range parallelTrials {
		_, kind, _ := strings.Cut(p.kind, " ")
		s.ended("default", p.name(), 4*time.Minute)
		list := s.trialsOf(p.name())
		if len(list) != 2 {
			t.Errorf("%d trials are of %s, want 2", len(list), p.kind)
		}
		for _, trial := range list {
			early := isGreat(t, &trial)
			if _, _, stopped := condition(&trial, "EarlyStopped"); stopped != early {
				t.Errorf("%s %s with %s: %v", kind, trial.GetName(), assignments(&trial), trial.Object["status"])
			}
			checkLatest(t, &trial, strings.TrimPrefix(assignments(&trial), "x="))
			if early {
				s.vanishes(t, "katib.kubeflow.org/trial="+trial.GetName())
				s.retained(t, kind, &trial, p.retain)
			}
		}
	}
	s.noProcessLeft()
}

// retained wants the run object of a trial that was stopped to be there, at rest,
// or not to be there.
func (s *server) retained(t *testing.T, kind string, trial *unstructured.Unstructured, want bool) {
	t.Helper()
	out := s.kubectl(t, "get", strings.ToLower(kind), trial.GetName(), "--ignore-not-found", "-o", "jsonpath={.spec.suspend}{.spec.runPolicy.suspend}")
	if (out == "true") != want || !want && out != "" {
		t.Errorf("%s %s has suspend %q, to be retained: %t", kind, trial.GetName(), out, want)
	}
}
