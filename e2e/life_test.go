// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// merge patches an experiment of the namespace default.
func (s *server) merge(name, patch string) {
	s.t.Helper()
	if _, err := s.client().Resource(experiments).Namespace("default").Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// says waits until a condition of an experiment is True.
func (s *server) says(name, conditionType string) *unstructured.Unstructured {
	s.t.Helper()
	var e *unstructured.Unstructured
	eventually(s.t, time.Minute, func() error {
		e = s.get(experiments, name)
		if _, _, ok := condition(e, conditionType); !ok {
			return fmt.Errorf("%s is not %s: %v", name, conditionType, e.Object["status"])
		}
		return nil
	})
	return e
}

// count is a number in an object's status.
func count(o *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "status", field)
	return n
}

// TestLifeSurvivesKills kills the whole platform while runs fail and are tried
// again, while an experiment is suspended, and when it ends.
func TestLifeSurvivesKills(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	diary := filepath.Join(t.TempDir(), "diary")
	flaky := shape{
		name: "flaky", trials: 6, parallel: 3, failed: 1,
		// Each trial fails twice. It says so where no part of the platform has a hand.
		command: fmt.Sprintf(`echo $KATIB_TRIAL_NAME >>%[1]s; sleep 0.5; echo loss=9; [ $(grep -c $KATIB_TRIAL_NAME %[1]s) -ge 3 ] || exit 1; echo loss=${trialParameters.x}`, diary),
	}
	manifest := strings.Replace(flaky.manifest(), "    primaryContainerName", "    maxRetryCount: 2\n    primaryContainerName", 1)
	s.apply(t, manifest)
	endless := shape{name: "endless", trials: 9, parallel: 2, command: "echo loss=${trialParameters.x}; sleep 1000", pod: "            terminationGracePeriodSeconds: 1",
		spec: "  suspendPolicy: SuspendTrials"}
	if err := endless.create(s); err != nil {
		t.Fatal(err)
	}
	s.says("endless", "Running")
	s.merge("endless", `{"spec": {"suspend": true}}`)
	for range 3 {
		time.Sleep(time.Second)
		s.kill()
		s.start()
	}
	if e := s.ended("default", "flaky", 2*time.Minute); count(e, "trialsSucceeded") != 6 || count(e, "trialsFailed") != 0 {
		t.Errorf("flaky came to %v", e.Object["status"])
	}
	text := read(t, diary)
	for _, trial := range s.trialsOf("flaky") {
		if runs := strings.Count(text, trial.GetName()); runs != 3 || count(&trial, "retries") != 2 {
			t.Errorf("trial %s ran %d times and counts %d retries, want 3 and 2", trial.GetName(), runs, count(&trial, "retries"))
		}
		if least := leastLoss(t, &trial); least == "" || least == "9" {
			t.Errorf("trial %s reports %q, want what its last run did", trial.GetName(), least)
		}
	}

	s.says("endless", "Suspended")
	eventually(t, time.Minute, func() error {
		list, err := s.client().Resource(pods).Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: "katib.kubeflow.org/experiment=endless"})
		if err != nil || len(list.Items) > 0 {
			return fmt.Errorf("%d Pods of a suspended experiment (%w)", len(list.Items), err)
		}
		return nil
	})
	s.merge("endless", `{"spec": {"suspend": false, "timeLimitSeconds": 1}}`)
	s.kill()
	s.start()
	if _, message, ok := condition(s.ended("default", "endless", time.Minute), "Failed"); !ok || !strings.Contains(message, "time limit of 1s") {
		t.Errorf("endless ended with %q, want its time limit", message)
	}
	s.kill()
	s.start()
	eventually(t, time.Minute, func() error {
		if e := s.get(experiments, "endless"); count(e, "trials") != count(e, "trialsKilled") || count(e, "trials") > 2 {
			return fmt.Errorf("endless came to %v, want that its trials are killed", e.Object["status"])
		}
		return nil
	})
}

// leastLoss is the least value of the loss that a trial's status shows.
func leastLoss(t *testing.T, trial *unstructured.Unstructured) string {
	t.Helper()
	metrics, _, err := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
	if err != nil || len(metrics) == 0 {
		return ""
	}
	least, _, _ := unstructured.NestedString(metrics[0].(map[string]any), "latest")
	return least
}

// TestLifecycleExample runs the example as its page says: it is held and goes
// on. It has fewer trials.
func TestLifecycleExample(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.apply(t, strings.Replace(read(t, filepath.Join(root, "examples", "lifecycle", "experiment.yaml")), "maxTrialCount: 30", "maxTrialCount: 12", 1))
	s.says("lifecycle", "Running")
	for _, patch := range []struct{ text, condition string }{
		{`{"spec": {"suspend": true}}`, "Suspended"}, {`{"spec": {"suspend": false}}`, "Running"},
	} {
		if _, stderr, code := s.diwan("kubectl", "patch", "experiment", "lifecycle", "--type", "merge", "-p", patch.text); code != 0 {
			t.Fatal(stderr)
		}
		s.says("lifecycle", patch.condition)
	}
	reason, _, ok := condition(s.ended("default", "lifecycle", 3*time.Minute), "Succeeded")
	if !ok || reason != "ExperimentGoalReached" && reason != "ExperimentMaxTrialsReached" {
		t.Errorf("the example ended for the reason %s", reason)
	}
}
