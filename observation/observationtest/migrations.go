// SPDX-License-Identifier: Apache-2.0

package observationtest

import (
	"database/sql"
	"errors"
	"sync"
	"testing"

	"diwan.dev/diwan/observation"
)

// Database is a database for a store, and for those who meddle with it.
type Database struct {
	// Open opens the store in it.
	Open func() (observation.Store, error)
	// SQL runs statements in it.
	SQL *sql.DB
	// Halfway says that a migration may stop halfway, because the database
	// does not undo the making of tables.
	Halfway bool
}

// RunMigrations holds stores whose schema has its version in the table
// observation_schema to the rules of migrating it. database makes an empty
// database of a name.
func RunMigrations(t *testing.T, database func(t *testing.T, name string) Database) {
	t.Run("AtOnce", func(t *testing.T) {
		t.Parallel()
		d := database(t, "migrate_at_once")
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				s, err := d.Open()
				if err != nil {
					t.Errorf("one of several that open at once: %v", err)
					return
				}
				defer s.Close()
				if _, err := s.Points(t.Context(), observation.Trial{Namespace: "default", Name: "a"}, observation.Query{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		var rows, version int
		if err := d.SQL.QueryRowContext(t.Context(), "SELECT count(*), max(version) FROM observation_schema").Scan(&rows, &version); err != nil {
			t.Fatal(err)
		}
		if rows != version {
			t.Errorf("%d migrations ran to version %d: want each once", rows, version)
		}
	})
	t.Run("Newer", func(t *testing.T) {
		t.Parallel()
		d := database(t, "migrate_newer")
		s, err := d.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := d.SQL.ExecContext(t.Context(), "INSERT INTO observation_schema (version) VALUES (99)"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Open(); !errors.Is(err, observation.ErrNewer) {
			t.Errorf("a schema of a later version: got %v, want ErrNewer", err)
		}
	})
	t.Run("Halfway", func(t *testing.T) {
		t.Parallel()
		d := database(t, "migrate_halfway")
		if !d.Halfway {
			return
		}
		s, err := d.Open()
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, observation.Trial{Namespace: "default", Name: "a"}, observation.Batch{Source: "main", To: 1})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		// As where a process died before it wrote the version down.
		for _, statement := range []string{"DELETE FROM observation_schema", "DROP TABLE observation_points"} {
			if _, err := d.SQL.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if s, err = d.Open(); err != nil {
			t.Fatalf("a migration that stopped halfway does not go on: %v", err)
		}
		defer s.Close()
		mustAppend(t, s, observation.Trial{Namespace: "default", Name: "a"}, observation.Batch{Source: "main", From: 1, To: 2, Points: []observation.Point{loss(1, "1")}})
	})
	t.Run("BesideKatib", func(t *testing.T) {
		t.Parallel()
		d := database(t, "migrate_beside_katib")
		for _, statement := range []string{
			"CREATE TABLE observation_logs (trial_name VARCHAR(255) NOT NULL, id INT PRIMARY KEY, time TIMESTAMP(6), metric_name VARCHAR(255) NOT NULL, value TEXT NOT NULL)",
			"INSERT INTO observation_logs (trial_name, id, metric_name, value) VALUES ('a', 1, 'loss', '0.5')",
		} {
			if _, err := d.SQL.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		s, err := d.Open()
		if err != nil {
			t.Fatalf("a database that is Katib's too: %v", err)
		}
		defer s.Close()
		if err := s.Delete(t.Context(), observation.Trial{Namespace: "default", Name: "a"}); err != nil {
			t.Error(err)
		}
		var rows int
		if err := d.SQL.QueryRowContext(t.Context(), "SELECT count(*) FROM observation_logs").Scan(&rows); err != nil || rows != 1 {
			t.Errorf("Katib's table has %d rows, %v: want its one", rows, err)
		}
	})
}
