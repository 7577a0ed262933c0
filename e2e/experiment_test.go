// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// shape is an experiment that tests vary.
type shape struct {
	name      string
	algorithm string // with random_state 1
	trials    int
	parallel  int
	failed    int    // maxFailedTrialCount
	command   string // run by sh; ${trialParameters.x} is a number from 0 to 1
	container string // more fields of the container, in YAML with 14 blanks before
	pod       string // more fields of the Pod, in YAML with 12 blanks before
	job       string // more fields of the Job, in YAML with 8 blanks before
	spec      string // more fields of the experiment, in YAML with 2 blanks before
}

// manifest writes the shape as a user would.
func (s shape) manifest() string {
	if s.algorithm == "" {
		s.algorithm = "random"
	}
	return fmt.Sprintf(`
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: %s
  namespace: default
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm:
    algorithmName: %s
    algorithmSettings: [{name: random_state, value: "1"}]
  maxTrialCount: %d
  parallelTrialCount: %d
  maxFailedTrialCount: %d
  parameters:
  - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
%s
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        backoffLimit: 0
%s
        template:
          spec:
            restartPolicy: Never
%s
            containers:
            - name: main
              image: busybox
              command: [sh, -c, %q]
%s
`, s.name, s.algorithm, s.trials, s.parallel, s.failed, s.spec, s.job, s.pod, s.command, s.container)
}

// create creates the experiment.
func (s shape) create(srv *server) error {
	object, err := decode(s.manifest())
	if err != nil {
		return err
	}
	_, err = srv.client().Resource(experiments).Namespace("default").Create(srv.t.Context(), object, metav1.CreateOptions{})
	return err
}

func decode(text string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		return nil, fmt.Errorf("cannot read manifest: %w\n%s", err, text)
	}
	return object, nil
}

// trialsOf lists an experiment's trials.
func (s *server) trialsOf(name string) []unstructured.Unstructured {
	s.t.Helper()
	list, err := s.client().Resource(trials).Namespace("default").List(s.t.Context(), metav1.ListOptions{
		LabelSelector: "katib.kubeflow.org/experiment=" + name,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// assignments are the parameters of a trial as text.
func assignments(trial *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(trial.Object, "spec", "parameterAssignments")
	var parts []string
	for _, item := range list {
		a, _ := item.(map[string]any)
		parts = append(parts, fmt.Sprintf("%v=%v", a["name"], a["value"]))
	}
	return strings.Join(parts, " ")
}

func index(t testing.TB, trial *unstructured.Unstructured) string {
	t.Helper()
	i := trial.GetAnnotations()["diwan.dev/trial-index"]
	if i == "" {
		t.Fatalf("trial %s has no index", trial.GetName())
	}
	return i
}
