// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/sqlite"
)

// threshold stops the trials of a shape whose x is greater than a half, and no
// others, whatever the order in which things happen.
const threshold = `  earlyStopping:
    algorithmName: threshold
    algorithmSettings: [{name: upper, value: "0.5"}]`

// great tells, in a shell, whether a trial is to be stopped.
const great = `awk 'BEGIN { exit !(${trialParameters.x} > 0.5) }'`

// isGreat tells it here.
func isGreat(t testing.TB, trial *unstructured.Unstructured) bool {
	t.Helper()
	x, err := strconv.ParseFloat(strings.TrimPrefix(assignments(trial), "x="), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x > 0.5
}

// TestStoppedTrialsEnd stops trials early that do not want to end: they ignore
// SIGTERM, and so do their children, one of which has left the session. Others
// use the grace to report once more.
func TestStoppedTrialsEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	stubborn := shape{
		name: "stubborn", trials: 8, parallel: 4, spec: threshold, pod: "            terminationGracePeriodSeconds: 1",
		command: `trap '' TERM; (trap '' TERM; sleep 1000) & setsid sh -c 'trap "" TERM; sleep 1000; true' &
			echo loss=${trialParameters.x}; if ` + great + `; then sleep 1000; fi; kill -9 $!; echo over`,
	}
	polite := shape{
		name: "polite", trials: 8, parallel: 4, spec: threshold, pod: "            terminationGracePeriodSeconds: 60",
		command: `trap 'echo loss=0.001; exit 0' TERM; echo loss=${trialParameters.x}; if ` + great + `; then while :; do sleep 0.1; done; fi`,
	}
	for _, e := range []shape{stubborn, polite} {
		if err := e.create(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []shape{stubborn, polite} {
		s.ended("default", e.name, 2*time.Minute)
		stopped := 0
		for _, trial := range s.trialsOf(e.name) {
			_, _, early := condition(&trial, "EarlyStopped")
			_, _, succeeded := condition(&trial, "Succeeded")
			if great := isGreat(t, &trial); early != great || succeeded == great {
				t.Errorf("trial %s with %s: %v", trial.GetName(), assignments(&trial), trial.Object["status"])
			}
			if !early {
				continue
			}
			stopped++
			if e.name == "polite" {
				checkLatest(t, &trial, "0.001")
			}
			logs, _ := filepath.Glob(filepath.Join(s.home, "logs", "default", trial.GetName()+"-*", "main", "0.log"))
			if len(logs) != 1 {
				t.Errorf("trial %s has the logs %v, want one", trial.GetName(), logs)
			}
		}
		if stopped == 0 || stopped == e.trials {
			t.Errorf("%d of %d trials of %s were stopped: that shows nothing", stopped, e.trials, e.name)
		}
	}
	s.noProcessLeft()
}

// checkLatest wants the latest value of a trial's loss.
func checkLatest(t *testing.T, trial *unstructured.Unstructured, want string) {
	t.Helper()
	metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
	for _, m := range metrics {
		if m, ok := m.(map[string]any); ok && m["name"] == "loss" && m["latest"] == want {
			return
		}
	}
	t.Errorf("trial %s shows %v, want the latest loss %s", trial.GetName(), metrics, want)
}

// TestInterruptedWhileStoppingEarly ends the platform in good order during the
// grace of a trial that is being stopped, which forgets what containers that are
// to run again had reported: this one is not to run again, and its value counts.
func TestInterruptedWhileStoppingEarly(t *testing.T) {
	t.Parallel()
	diary := filepath.Join(t.TempDir(), "diary")
	e := shape{
		name: "interrupted", trials: 1, parallel: 1, spec: strings.Replace(threshold, "0.5", "-1", 1),
		pod:     "            terminationGracePeriodSeconds: 600",
		command: fmt.Sprintf("echo begin >>%s; trap '' TERM; echo loss=${trialParameters.x}; while :; do sleep 0.1; done", diary),
	}
	s := newServer(t)
	if err := e.create(s); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		for _, trial := range s.trialsOf(e.name) {
			if step, _, _ := unstructured.NestedInt64(trial.Object, "status", "stoppedAtStep"); step == 1 {
				return nil
			}
		}
		return errors.New("the trial is not being stopped")
	})
	s.stop()
	s.start()
	s.ended("default", e.name, 2*time.Minute)
	trial := s.trialsOf(e.name)[0]
	if _, _, ok := condition(&trial, "EarlyStopped"); !ok {
		t.Errorf("the trial ended with %v", trial.Object["status"])
	}
	checkLatest(t, &trial, strings.TrimPrefix(assignments(&trial), "x="))
	if text, err := os.ReadFile(diary); err != nil || string(text) != "begin\n" {
		t.Errorf("the trial began %q (%v), want once", text, err)
	}
}

// stoppingVictim has half of its trials go on until they are stopped: a decision that
// is forgotten would have the experiment never end.
func stoppingVictim(t *testing.T) victim {
	diary := filepath.Join(t.TempDir(), "diary")
	e := shape{
		name: "stopping", trials: killedTrials, parallel: 6, spec: threshold,
		command: fmt.Sprintf(`echo begin $KATIB_TRIAL_NAME >>%[1]s; sleep 0.4; for i in 1 2 3; do echo loss=${trialParameters.x}; sleep 0.1; done
			while %[2]s; do echo loss=${trialParameters.x}; sleep 0.2; done; echo end $KATIB_TRIAL_NAME >>%[1]s`, diary, great),
	}
	var list []unstructured.Unstructured
	check := func(t *testing.T, s *server, ended *unstructured.Unstructured) {
		list = s.trialsOf(e.name)
		if len(list) != killedTrials {
			t.Errorf("%d trials exist, want %d", len(list), killedTrials)
		}
		stopped := 0
		for _, trial := range list {
			_, _, early := condition(&trial, "EarlyStopped")
			_, _, succeeded := condition(&trial, "Succeeded")
			if great := isGreat(t, &trial); early != great || succeeded == great {
				t.Errorf("trial %s with %s: %v", trial.GetName(), assignments(&trial), trial.Object["status"])
			}
			if early {
				stopped++
			}
		}
		for field, want := range map[string]int{"trialsEarlyStopped": stopped, "trialsSucceeded": killedTrials - stopped, "trials": killedTrials} {
			if n, _, _ := unstructured.NestedInt64(ended.Object, "status", field); n != int64(want) {
				t.Errorf("the experiment counts %s as %d, want %d", field, n, want)
			}
		}
		checkStopDiary(t, diary, stopped)
	}
	return victim{e, check, func(t *testing.T, home string) { checkReports(t, home, list) }}
}

// checkStopDiary wants every trial to have begun once, and those that were not
// stopped to have ended once.
func checkStopDiary(t *testing.T, path string, stopped int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen, ends := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		if seen[line] {
			t.Errorf("%q happened twice", strings.TrimSpace(line))
		}
		seen[line] = true
		if strings.HasPrefix(line, "end ") {
			ends++
		}
	}
	if begins := len(seen) - ends; begins != killedTrials || ends != killedTrials-stopped {
		t.Errorf("%d trials began and %d ended, want %d and %d", begins, ends, killedTrials, killedTrials-stopped)
	}
}

// checkReports wants the store to hold each line of each log once.
func checkReports(t *testing.T, home string, list []unstructured.Unstructured) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(home, "observations.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, trial := range list {
		points, err := store.Points(t.Context(), observation.Trial{Namespace: "default", Name: trial.GetName()}, observation.Query{})
		if err != nil {
			t.Fatal(err)
		}
		printed := 0
		logs, _ := filepath.Glob(filepath.Join(home, "logs", "default", trial.GetName()+"-*", "main", "*.log"))
		for _, log := range logs {
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			printed += strings.Count(string(text), "loss=")
		}
		if len(points) != printed || printed == 0 {
			t.Errorf("trial %s has %d values stored and printed %d", trial.GetName(), len(points), printed)
		}
	}
}

// TestEarlyStoppingExample runs the example, with fewer trials and epochs.
func TestEarlyStoppingExample(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("python3 is not installed")
		}
		t.Skip("python3 is not installed")
	}
	s := newServer(t)
	s.apply(t, stoppingExample(t))
	checkStoppingExample(t, s.ended("default", "digits-stopping", 5*time.Minute))
}

// stoppingExample is the example with fewer trials and epochs. A trial must last
// longer than a busy machine needs to read what it says and to stop it.
func stoppingExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples/early-stopping/experiment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	train := abs(t, filepath.Join(root, "examples/quickstart/train.py"))
	return strings.NewReplacer("maxTrialCount: 30", "maxTrialCount: 9", "--epochs=20", "--epochs=12", "../quickstart/train.py", train).Replace(string(text))
}

// checkStoppingExample wants some trials to have been stopped, and the best to
// have observed what its program prints.
func checkStoppingExample(t *testing.T, ended *unstructured.Unstructured) {
	t.Helper()
	if _, _, ok := condition(ended, "Succeeded"); !ok {
		t.Errorf("the experiment ended with %v", ended.Object["status"])
	}
	stopped, _, _ := unstructured.NestedInt64(ended.Object, "status", "trialsEarlyStopped")
	succeeded, _, _ := unstructured.NestedInt64(ended.Object, "status", "trialsSucceeded")
	if stopped == 0 || succeeded < 3 || stopped+succeeded != 9 {
		t.Errorf("%d trials were stopped and %d succeeded, want some of each and 9 in all", stopped, succeeded)
	}
	best := struct {
		ParameterAssignments []struct{ Name, Value string }
		Observation          struct {
			Metrics []struct{ Name, Min, Max, Latest string }
		}
	}{}
	object, _, _ := unstructured.NestedMap(ended.Object, "status", "currentOptimalTrial")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &best); err != nil {
		t.Fatal(err)
	}
	arguments := []string{filepath.Join(root, "examples/quickstart/train.py"), "--epochs=12"}
	flags := map[string]string{"lr": "--lr=", "momentum": "--momentum=", "hidden": "--hidden=", "batchSize": "--batch-size="}
	for _, a := range best.ParameterAssignments {
		arguments = append(arguments, flags[a.Name]+a.Value)
	}
	text, err := exec.CommandContext(t.Context(), "python3", arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	last := strings.Fields(string(text))
	for _, m := range best.Observation.Metrics {
		if printed := m.Name + "=" + m.Latest; !slices.Contains(last[len(last)-2:], printed) || !strings.Contains(string(text), m.Name+"="+m.Max) {
			t.Errorf("the best trial observed %+v, its program prints\n%s", m, text)
		}
	}
}
