// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unmapped are Katib's examples whose program or collector is not here: they
// must be accepted, but not run to a success.
var unmapped = map[string]string{
	"custom-metrics-collector.yaml": "its collector needs Katib's SDK: TestCustomCollector runs it",
	"fpga-xgboost.yaml":             "its program needs an FPGA",
	"enas-gpu.yaml":                 "its program needs a GPU",
	"darts-gpu.yaml":                "its program needs a GPU",
}

// TestKatibExamples gives Katib's own examples to the platform as they are,
// with their images mapped to small programs.
func TestKatibExamples(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	table := "images:\n- {image: '*', runtime: process}\n"
	for _, image := range []struct{ name, program, dir string }{
		{"pytorch-mnist-cpu", "mnist", "/opt/pytorch-mnist"},
		{"enas-cnn-cifar10-cpu", "enas", "/opt/enas-cnn-cifar10"},
		{"darts-cnn-cifar10-cpu", "darts", "/opt/darts-cnn-cifar10"},
		{"simple-pbt", "pbt", "/opt/pbt"},
	} {
		table += fmt.Sprintf("- image: ghcr.io/kubeflow/katib/%s\n  files: {%s: %s}\n  workingDir: %[2]s\n",
			image.name, image.dir, abs(t, "testdata/"+image.program))
	}
	if err := os.WriteFile(filepath.Join(s.home, "images.yaml"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(root + "/examples/katib/jobs/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d examples (%v)", len(files), err)
	}
	s.parts(t, func(part part) {
		for _, file := range files {
			name := filepath.Base(file)
			part(name, func(t *testing.T, s *server) {
				if why, ok := unmapped[name]; ok {
					if _, stderr, code := s.diwan("kubectl", "create", "-f", abs(t, file)); code != 0 {
						t.Errorf("kubectl create -f %s (%s): exit code %d\n%s", name, why, code, stderr)
					}
					return
				}
				s.succeeds(t, file)
			})
		}
	})
	rejected, _ := filepath.Glob(root + "/examples/katib/rejected/*.yaml")
	for _, file := range rejected {
		if _, stderr, code := s.diwan("kubectl", "create", "-f", abs(t, file)); code == 0 || !strings.Contains(stderr, "is invalid") {
			t.Errorf("%s was not refused: %s", file, stderr)
		}
	}
}

// succeeds runs an experiment, which must end with a best trial.
func (s *server) succeeds(t *testing.T, file string) {
	t.Helper()
	stdout, stderr, code := s.diwan("run", "-o", "json", abs(t, file))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	var result struct {
		Condition string
		Best      struct{ Trial, Metric string }
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if result.Condition != "Succeeded" || result.Best.Trial == "" {
		t.Errorf("got %+v, want a success with a best trial", result)
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKubectl uses an experiment as a user of Katib would.
func TestKubectl(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	kubectl := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := s.diwan(append([]string{"kubectl"}, args...)...)
		if code != 0 {
			t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
		}
		return stdout
	}
	wants := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in\n%s", part, text)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "experiment.yaml")
	e := shape{
		name: "tuned", trials: 3, parallel: 3,
		command: "for i in 1 2 3; do echo step=$i loss=${trialParameters.x}; sleep 0.3; done",
		spec:    "  # kept",
	}
	manifest := strings.Replace(e.manifest(), "    primaryContainerName", "    retain: true\n    primaryContainerName", 1)
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(kubectl("apply", "-f", file), "experiment.kubeflow.org/tuned created")
	wants(kubectl("wait", "--for=condition=Succeeded", "--timeout=60s", "experiment/tuned"), "condition met")
	wants(kubectl("get", "experiments"), "NAME", "TYPE", "STATUS", "AGE", "tuned", "Succeeded", "True")
	wants(kubectl("get", "trials"), "NAME", "TYPE", "STATUS", "AGE", "tuned-", "Succeeded")
	wants(kubectl("describe", "experiment", "tuned"), "Objective Metric Name:", "Current Optimal Trial", "ExperimentMaxTrialsReached")
	wants(kubectl("explain", "experiment.spec.objective"), "KIND:", "Experiment", "objectiveMetricName")

	best, _, _ := unstructured.NestedString(s.get(experiments, "tuned").Object, "status", "currentOptimalTrial", "bestTrialName")
	if best == "" {
		t.Fatal("there is no optimal trial")
	}
	wants(kubectl("logs", "-f", "job/"+best), "step=1", "step=3", "loss=")
	wants(kubectl("logs", "--tail=1", "--timestamps", "-l", "katib.kubeflow.org/trial="+best), "T", "step=3")

	longer := shape{name: "longer", trials: 1, parallel: 1, command: "echo loss=${trialParameters.x}; cat; sleep 1000", pod: "            terminationGracePeriodSeconds: 1"}
	if err := longer.create(s); err != nil {
		t.Fatal(err)
	}
	var pod string
	eventually(t, time.Minute, func() error {
		list, err := s.client().Resource(pods).Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: "katib.kubeflow.org/experiment=longer"})
		if err != nil || len(list.Items) == 0 {
			return fmt.Errorf("no Pod (%w)", err)
		}
		pod = list.Items[0].GetName()
		if phase, _, _ := unstructured.NestedString(list.Items[0].Object, "status", "phase"); phase != "Running" {
			return fmt.Errorf("the Pod is %s", phase)
		}
		return nil
	})
	wants(kubectl("exec", pod, "--", "sh", "-c", "echo from $KATIB_TRIAL_NAME"), "from longer-")
	wants(kubectl("describe", "pod", pod), "Running", "longer")
	wants(kubectl("delete", "experiment", "longer"), "deleted")
	eventually(t, time.Minute, func() error {
		list, err := s.client().Resource(pods).Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: "katib.kubeflow.org/experiment=longer"})
		if err != nil || len(list.Items) > 0 {
			return fmt.Errorf("%d Pods are left (%w)", len(list.Items), err)
		}
		return nil
	})
	s.noProcessLeft()
}
