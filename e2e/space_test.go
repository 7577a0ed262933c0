// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSearchSpaceExample runs the example of what can be said of a space, after
// the search that it learns from, and says what is wrong with one that asks
// for what cannot be.
func TestSearchSpaceExample(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	s := newServer(t)
	for _, name := range []string{"earlier", "experiment"} {
		if stdout, stderr, code := s.diwan("run", "-o", "json", abs(t, root+"/examples/search-space/"+name+".yaml")); code != 0 {
			t.Fatalf("%s.yaml: exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
	for _, trial := range s.trialsOf("search-space") {
		text, err := trial.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		tuned := strings.Contains(string(text), `{"name":"descent","value":"tuned"}`)
		if argument := strings.Contains(string(text), "--momentum="); argument != tuned {
			t.Errorf("trial %s: its momentum is tuned: %v, and the argument is there: %v", trial.GetName(), tuned, argument)
		}
	}
	wrong := shape{name: "wrong", trials: 1, parallel: 1, command: "echo loss=${trialParameters.x}"}
	manifest := strings.Replace(wrong.manifest(), "spec:\n", "spec:\n  parameterConstraints: [\"x < depth\"]\n", 1)
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := s.diwan("kubectl", "apply", "-f", file)
	if code == 0 || !strings.Contains(stderr, "spec.parameterConstraints[0]") || !strings.Contains(stderr, "depth") {
		t.Errorf("a constraint on an unknown parameter: exit code %d\n%s", code, stderr)
	}
}

// TestObjectivesExample runs the example of several objectives and a constraint,
// which 39 hidden units still satisfy.
func TestObjectivesExample(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	s := newServer(t)
	if stdout, stderr, code := s.diwan("run", "-o", "json", abs(t, root+"/examples/objectives/experiment.yaml")); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	optimal, _, err := unstructured.NestedSlice(s.get(experiments, "objectives").Object, "status", "optimalTrials")
	if err != nil || len(optimal) == 0 {
		t.Fatalf("there are no optimal trials (%v)", err)
	}
	for _, each := range optimal {
		assignments, _, _ := unstructured.NestedSlice(each.(map[string]any), "parameterAssignments")
		for _, a := range assignments {
			if a := a.(map[string]any); a["name"] == "hidden" {
				if n, err := strconv.Atoi(a["value"].(string)); err != nil || n > 39 {
					t.Errorf("a trial with %v hidden units is optimal, which has too many weights", a["value"])
				}
			}
		}
	}
}
