// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/sqlite"
)

// Kills of the server, and the trials of the experiment that they disturb.
const (
	kills        = 20
	killedTrials = 60
)

// killOften kills the whole platform again and again, at random moments, and
// starts it anew.
func (s *server) killOften() {
	s.t.Helper()
	seed := rand.Uint64()
	s.t.Logf("the moments come from seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		s.kill()
		s.start()
	}
}

// TestKilledAtAnyMomentNothingIsLost kills the whole platform again and again
// while it works and compares the outcome with an undisturbed run.
func TestKilledAtAnyMomentNothingIsLost(t *testing.T) {
	t.Parallel()
	diary := filepath.Join(t.TempDir(), "diary")
	disturbed := shape{
		name: "disturbed", trials: killedTrials, parallel: 4,
		// What a trial does is written where no part of the platform has a hand.
		command: fmt.Sprintf("echo begin $KATIB_TRIAL_NAME >>%s; sleep 0.7; echo loss=${trialParameters.x}; sleep 0.3; echo end $KATIB_TRIAL_NAME >>%s", diary, diary),
	}
	s := newServer(t)
	if err := disturbed.create(s); err != nil {
		t.Fatal(err)
	}
	s.killOften()
	s.ended("default", disturbed.name, 4*time.Minute)

	undisturbed := shape{name: "undisturbed", trials: killedTrials, parallel: 10, command: "echo loss=${trialParameters.x}"}
	if err := undisturbed.create(s); err != nil {
		t.Fatal(err)
	}
	s.ended("default", undisturbed.name, 2*time.Minute)
	want := map[string]string{}
	for _, trial := range s.trialsOf(undisturbed.name) {
		want[index(t, &trial)] = assignments(&trial)
	}

	got := s.trialsOf(disturbed.name)
	if len(got) != killedTrials {
		t.Errorf("%d trials exist, want %d", len(got), killedTrials)
	}
	for _, trial := range got {
		if _, _, ok := condition(&trial, "Succeeded"); !ok {
			t.Errorf("trial %s did not succeed: %v", trial.GetName(), trial.Object["status"])
		}
		i := index(t, &trial)
		if a := assignments(&trial); a != want[i] {
			t.Errorf("trial %s has the parameters %s, an undisturbed run has %s", i, a, want[i])
		}
		delete(want, i)
	}
	if len(want) > 0 {
		t.Errorf("these suggestions of an undisturbed run are missing: %v", want)
	}
	checkDiary(t, diary, killedTrials)

	names := make([]string, 0, len(got))
	for _, trial := range got {
		names = append(names, trial.GetName())
	}
	s.stop()
	checkObservations(t, filepath.Join(s.home, "observations.db"), names)
}

// checkDiary wants every trial to have begun once and ended once.
func checkDiary(t *testing.T, path string, trials int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		count[strings.TrimSpace(line)]++
	}
	for line, n := range count {
		if n != 1 {
			t.Errorf("%q happened %d times", line, n)
		}
	}
	if len(count) != 2*trials {
		t.Errorf("the diary has %d entries, want %d trials that began and ended", len(count), trials)
	}
}

// checkObservations wants every trial to have reported once.
func checkObservations(t *testing.T, path string, names []string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, name := range names {
		points, err := store.Points(t.Context(), observation.Trial{Namespace: "default", Name: name}, observation.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if len(points) != 1 {
			t.Errorf("trial %s has %d observations stored, want 1: %v", name, len(points), points)
		}
	}
}
