// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCheckpoints has a population train. Each trial counts on in the file that
// it finds, so that its count says how many trials are behind it.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	e := shape{
		name: "population", algorithm: "pbt", trials: 14, parallel: 3,
		command: "n=$(cat /checkpoints/n); n=$((n + 1)); echo $n > /checkpoints/n; echo loss=$n; echo ${trialParameters.x}",
	}
	manifest := strings.Replace(e.manifest(), `algorithmSettings: [`, `algorithmSettings: [{name: suggestion_trial_dir, value: /checkpoints}, `+
		`{name: n_population, value: "5"}, {name: truncation_threshold, value: "0.4"}, `, 1)
	manifest = strings.Replace(manifest, `max: "1"}`, `max: "1", step: "0.01"}`, 1)
	s.apply(t, manifest)
	s.ended("default", e.name, 2*time.Minute)
	later := 0
	for _, trial := range s.trialsOf(e.name) {
		generation := trial.GetLabels()["pbt.suggestion.katib.kubeflow.org/generation"]
		metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
		if len(metrics) != 1 {
			t.Fatalf("trial %s has no metric", trial.GetName())
		}
		before, err := strconv.Atoi(generation)
		if err != nil {
			t.Fatal(err)
		}
		if got := metrics[0].(map[string]any)["latest"]; got != strconv.Itoa(before+1) {
			t.Errorf("trial %s of generation %d has counted to %v", trial.GetName(), before, got)
		}
		if generation != "0" {
			later++
		}
	}
	if later == 0 {
		t.Error("no trial went on from another")
	}
}

// TestArchitectureExample runs the example of a search that its one trial does.
func TestArchitectureExample(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	s := newServer(t)
	stdout, stderr, code := s.diwan("run", "-o", "json", abs(t, root+"/examples/architecture/darts.yaml"))
	if code != 0 || !strings.Contains(stdout, "Genotype(normal=") {
		t.Fatalf("exit code %d, want 0 and a genotype\n%s%s", code, stdout, stderr)
	}
}
