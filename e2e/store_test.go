// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/observationtest/database"
	"diwan.dev/diwan/observation/stores"
)

// TestStoresAgree runs one experiment, whose search learns from each trial, on
// every store: its trials have the same parameters and the same observations.
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	postgres, mariadb := database.Postgres().Lend(t), database.MariaDB().Lend(t)
	locations := map[string]string{
		"Memory":     "memory:",
		"SQLite":     "sqlite:" + filepath.Join(t.TempDir(), "metrics", "observations.db"),
		"PostgreSQL": postgres.URL(),
		"MariaDB":    mariadb.URL(),
	}
	learner := shape{
		name: "learner", algorithm: "tpe", trials: 14, parallel: 1,
		command: "for d in 4 1 3; do echo loss=${trialParameters.x}$d; done; echo loss=nan",
	}
	seen := map[string]map[string]string{}
	for name, location := range locations {
		file := filepath.Join(t.TempDir(), "store")
		if err := os.WriteFile(file, []byte(location), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newServer(t, "--store", "@"+file)
		if err := learner.create(s); err != nil {
			t.Fatal(err)
		}
		s.ended("default", learner.name, 3*time.Minute)
		seen[name] = map[string]string{}
		for _, trial := range s.trialsOf(learner.name) {
			metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
			seen[name][index(t, &trial)] = fmt.Sprint(assignments(&trial), " ", metrics)
		}
		s.stop()
		if _, err := os.Stat(filepath.Join(s.home, "observations.db")); err == nil {
			t.Errorf("%s: metrics are kept in the home too", name)
		}
	}
	for name, trials := range seen {
		if len(trials) != learner.trials {
			t.Errorf("%s: %d trials, want %d", name, len(trials), learner.trials)
		}
		if diff := cmp.Diff(seen["Memory"], trials); diff != "" {
			t.Errorf("-Memory, +%s:\n%s", name, diff)
		}
	}
}

// TestDatabaseAway kills the database while trials report. They wait, and say
// why, and when it is back all that they reported is stored, once.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	for _, kind := range []*database.Kind{database.Postgres(), database.MariaDB()} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			db := kind.Lend(t)
			s := newServer(t, "--store", db.URL())
			const trials, lines = 4, 30
			report := shape{
				name: "report", trials: trials, parallel: trials,
				command: fmt.Sprintf("echo x=${trialParameters.x}; i=0; while [ $i -lt %d ]; do echo loss=$i; i=$((i+1)); sleep 0.1; done", lines),
			}
			if err := report.create(s); err != nil {
				t.Fatal(err)
			}
			s.trialsSay(report.name, 1, "TrialRunning")
			db.Kill()
			s.trialsSay(report.name, trials, "ObservationUnreadable")
			time.Sleep(2 * time.Second) // and the programs have ended
			if err := db.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.ended("default", report.name, 3*time.Minute)
			store, err := stores.Open(t.Context(), db.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			for _, trial := range s.trialsOf(report.name) {
				if _, _, ok := condition(&trial, "Succeeded"); !ok {
					t.Errorf("trial %s did not succeed: %v", trial.GetName(), trial.Object["status"])
				}
				points, err := store.Points(t.Context(), observation.Trial{Namespace: "default", Name: trial.GetName()}, observation.Query{})
				if err != nil {
					t.Fatal(err)
				}
				var got, want []string
				for i := range lines {
					want = append(want, fmt.Sprint(i))
				}
				for _, p := range points {
					got = append(got, p.Value)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("trial %s: -reported, +stored:\n%s", trial.GetName(), diff)
				}
			}
		})
	}
}

// trialsSay waits until at least so many trials of an experiment run for a
// reason.
func (s *server) trialsSay(experiment string, n int, reason string) {
	s.t.Helper()
	eventually(s.t, 2*time.Minute, func() error {
		count := 0
		trials := s.trialsOf(experiment)
		for _, trial := range trials {
			if got, _, _ := condition(&trial, "Running"); got == reason {
				count++
			}
		}
		if count < n {
			return fmt.Errorf("%d trials of %d run for %s, want %d", count, len(trials), reason, n)
		}
		return nil
	})
}
