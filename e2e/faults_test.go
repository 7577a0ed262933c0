// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diwan.dev/diwan/internal/testing/chance"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/observationtest/database"
	"diwan.dev/diwan/observation/stores"
)

// soak has TestFaults disturb an experiment of 300 trials, with the database away for
// a minute, TestTrainingFaults 100 training jobs, and TestChart as many of both on a
// cluster whose parts are processes of their own: see make soak.
var soak = flag.Bool("soak", false, "disturb long experiments")

// fault is something that goes wrong for a while.
type fault struct {
	name string
	// happen makes it go wrong and, after the time away, right again.
	happen func(away time.Duration)
}

// TestFaults has everything go wrong that can, at random moments: the platform is
// killed, stopped and stalled, the database is killed and away. Each trial ends
// once, as its program did, with what it reported, once.
func TestFaults(t *testing.T) {
	t.Parallel()
	trials, faults, longest := 40, 8, 2*time.Second
	if *soak {
		trials, faults, longest = 300, 60, time.Minute
	}
	db := database.Postgres().LendDurable(t)
	s := newServer(t, "--store", db.URL())
	diary := filepath.Join(t.TempDir(), "diary")
	disturbed := shape{
		name: "disturbed", trials: trials, parallel: 6, failed: 1,
		command: fmt.Sprintf("echo begin $KATIB_TRIAL_NAME >>%s; for i in 1 2 3 4; do echo loss=$i; sleep 0.2; done; echo loss=${trialParameters.x}; echo end $KATIB_TRIAL_NAME >>%s", diary, diary),
	}
	if err := disturbed.create(s); err != nil {
		t.Fatal(err)
	}
	disturb(t, s.faults(db), faults, longest)
	s.ended("default", disturbed.name, 10*time.Minute)
	store, err := stores.Open(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s.undisturbed(store, disturbed.name, trials, 5)
	ends := map[string]int{}
	text, err := os.ReadFile(diary)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if trial, ok := strings.CutPrefix(line, "end "); ok {
			ends[trial]++
		}
	}
	for trial, n := range ends {
		if n != 1 {
			t.Errorf("trial %s ran to its end %d times", strings.TrimSpace(trial), n)
		}
	}
	if len(ends) != trials {
		t.Errorf("%d trials ran to their end, want %d", len(ends), trials)
	}
}

// faults are those of a server and its database.
func (s *server) faults(db *database.Server) []fault {
	return []fault{
		{"killed", func(time.Duration) { s.kill(); s.start() }},
		{"stalled", func(away time.Duration) { // as by a slow disk, or a laptop that sleeps
			_ = s.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(away)
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
		}},
		{"database away", func(away time.Duration) {
			db.Kill()
			time.Sleep(away)
			if err := db.Start(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
		}},
		{"killed, database away", func(away time.Duration) {
			db.Kill()
			s.kill()
			time.Sleep(min(away, 3*time.Second))
			if err := db.Start(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
			s.start()
		}},
	}
}

// disturb has n faults happen at random moments, each at least once.
func disturb(t *testing.T, faults []fault, n int, longest time.Duration) {
	t.Helper()
	random := chance.New(t)
	for i := range n {
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		f, away := faults[i%len(faults)], time.Duration(random.Int64N(int64(2*time.Second)))
		if i%len(faults) == 2 && i < len(faults) {
			away = longest // once for long
		}
		t.Logf("%s for %s", f.name, away)
		f.happen(away)
	}
}

// undisturbed wants all trials of an experiment to have succeeded, each with so
// many values of its loss.
func (s *server) undisturbed(store observation.Store, experiment string, trials, losses int) {
	s.t.Helper()
	list := s.trialsOf(experiment)
	if len(list) != trials {
		s.t.Errorf("%d trials exist, want %d", len(list), trials)
	}
	for _, trial := range list {
		if _, _, ok := condition(&trial, "Succeeded"); !ok {
			s.t.Errorf("trial %s did not succeed: %v", trial.GetName(), trial.Object["status"])
		}
		points, err := store.Points(s.t.Context(), observation.Trial{Namespace: "default", Name: trial.GetName()}, observation.Query{Metric: "loss"})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(points) != losses {
			s.t.Errorf("trial %s has %d values of its loss stored, want %d: %v", trial.GetName(), len(points), losses, points)
		}
	}
}
