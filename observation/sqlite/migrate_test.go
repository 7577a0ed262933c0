// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/observation"
)

// TestMigrate opens a file of version 1, twice at once, and wants what it holds.
func TestMigrate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "observations.db")
	raw(t, path, slices.Concat(schema().Migrations[0], []string{
		schema().SetVersion(1),
		`INSERT INTO observation_sources VALUES ('default', 'a', 'main', 9), ('default', 'a', 'side', 4), ('default', 'b', 'main', 7)`,
		`INSERT INTO observation_logs (namespace, trial_name, source, time, metric_name, value) VALUES
			('default', 'a', 'main', '2026-01-02T03:04:05.000000000Z', 'loss', '1'),
			('default', 'b', 'main', '2026-01-02T03:04:05.000000000Z', 'loss', '2'),
			('default', 'a', 'side', '2026-01-02T03:04:05.000000000Z', 'loss', '3')`,
	})...)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			want := []observation.Point{{Time: at, Metric: "loss", Value: "1"}, {Time: at, Metric: "loss", Value: "3"}}
			got, err := s.Points(t.Context(), observation.Trial{Namespace: "default", Name: "a"}, observation.Query{})
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("points: %v, -want, +got:\n%s", err, diff)
			}
			for source, want := range map[string]int64{"main": 9, "side": 4, "none": 0} {
				if got, err := s.Offset(t.Context(), observation.Trial{Namespace: "default", Name: "a"}, source); err != nil || got != want {
					t.Errorf("offset of %s = %d, %v; want %d", source, got, err, want)
				}
			}
		})
	}
	group.Wait()
}
