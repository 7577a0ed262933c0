// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/internal/testing/chance"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/sqlite"
)

// Kills of the server, and the trials of each experiment that they disturb.
const (
	kills        = 20
	killedTrials = 60
)

// killOften kills the whole platform again and again, at random moments, and
// starts it anew.
func (s *server) killOften() {
	s.t.Helper()
	random := chance.New(s.t)
	for range kills {
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		s.kill()
		s.start()
	}
}

// victim is an experiment that runs while the platform is killed.
type victim struct {
	shape
	// check looks at the experiment when it has ended.
	check func(t *testing.T, s *server, ended *unstructured.Unstructured)
	// stored looks at what is stored when the server has stopped.
	stored func(t *testing.T, home string)
}

// TestKilled kills the whole platform again and again while it works on several
// experiments, and wants each to end as if nothing had happened.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	victims := []victim{plainVictim(t), stoppingVictim(t)}
	for _, v := range victims {
		if err := v.create(s); err != nil {
			t.Fatal(err)
		}
	}
	s.killOften()
	for _, v := range victims {
		t.Run(v.name, func(t *testing.T) { v.check(t, s, s.ended("default", v.name, 4*time.Minute)) })
	}
	s.noProcessLeft()
	s.stop()
	for _, v := range victims {
		v.stored(t, s.home)
	}
}

// plainVictim is compared with an undisturbed run.
func plainVictim(t *testing.T) victim {
	diary := filepath.Join(t.TempDir(), "diary")
	disturbed := shape{
		name: "disturbed", trials: killedTrials, parallel: 4,
		// What a trial does is written where no part of the platform has a hand.
		command: fmt.Sprintf("echo begin $KATIB_TRIAL_NAME >>%s; sleep 0.7; echo loss=${trialParameters.x}; sleep 0.3; echo end $KATIB_TRIAL_NAME >>%s", diary, diary),
	}
	var names []string
	check := func(t *testing.T, s *server, _ *unstructured.Unstructured) {
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
			names = append(names, trial.GetName())
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
	}
	return victim{disturbed, check, func(t *testing.T, home string) { checkObservations(t, filepath.Join(home, "observations.db"), names) }}
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
