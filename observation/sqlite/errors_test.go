// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"diwan.dev/diwan/observation"
)

// storeFile returns the path of a closed store that holds some points.
func storeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "observations.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		trial := observation.Trial{Namespace: "default", Name: fmt.Sprint("trial-", i)}
		if err := s.Append(t.Context(), trial, filled(0, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// filled returns a batch of so many points.
func filled(from int64, points int) observation.Batch {
	b := observation.Batch{Source: "main", From: from, To: from + 1}
	for i := range points {
		b.Points = append(b.Points, observation.Point{Time: time.Unix(int64(i), 0), Metric: "loss", Value: "0.123456789"})
	}
	return b
}

// raw runs statements on a file without the store.
func raw(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", source(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		damage func(t *testing.T, path string)
		want   error
		hint   string
	}{
		"Newer": {
			reason: "A file of a later version may mean what this program cannot know.",
			damage: func(t *testing.T, path string) { raw(t, path, "PRAGMA user_version = 99") },
			want:   observation.ErrNewer,
			hint:   "use the program that wrote it",
		},
		"Foreign": {
			reason: "Somebody else's database is not ours to change.",
			damage: func(t *testing.T, path string) {
				raw(t, path, "PRAGMA application_id = 7")
			},
			want: observation.ErrCorrupt,
			hint: "give the store its own file",
		},
		"NotDatabase": {
			reason: "A text file is not replaced by an empty store.",
			damage: func(t *testing.T, path string) {
				if err := os.WriteFile(path, []byte(strings.Repeat("dear diary, ", 1000)), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			want: observation.ErrCorrupt,
			hint: "move it away",
		},
		"Directory": {
			reason: "The cause is said as the system says it.",
			damage: func(t *testing.T, path string) {
				if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
					t.Fatal(err)
				}
			},
			hint: "is a directory",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := storeFile(t)
			tc.damage(t, path)
			before, _ := os.ReadFile(path)
			s, err := Open(t.Context(), path)
			if err == nil {
				_ = s.Close()
				t.Fatalf("%s Open accepted the file", tc.reason)
			}
			if tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%s Open: got %v, want one that wraps %v", tc.reason, err, tc.want)
			}
			for _, part := range []string{path, tc.hint} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s Open: %q does not say %q", tc.reason, err, part)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Errorf("%s Open changed the file", tc.reason)
			}
		})
	}
}

// TestDamage overwrites the middle of a store's file: reading must fail with a
// named error or give what was stored, and never crash or invent.
func TestDamage(t *testing.T) {
	t.Parallel()
	path := storeFile(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(content); i++ { // all but the first page
		content[i] = 0xa5
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path)
	if err == nil {
		_, err = s.Points(t.Context(), observation.Trial{Namespace: "default", Name: "trial-3"}, observation.Query{})
		_ = s.Close()
	}
	if !errors.Is(err, observation.ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Errorf("reading a damaged file: got %v, want one that wraps ErrCorrupt and names %s", err, path)
	}
}

// TestFull fills the space that a store may use: what does not fit is rejected
// whole, what is there stays readable, and small changes go on when there is
// space again.
func TestFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "observations.db")
	s, err := open(t.Context(), path, "max_page_count(14)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	small, big := observation.Trial{Namespace: "default", Name: "small"}, observation.Trial{Namespace: "default", Name: "big"}
	var group sync.WaitGroup
	group.Go(func() {
		if err := s.Append(t.Context(), small, filled(0, 3)); err != nil {
			t.Errorf("a batch that fits: %v", err)
		}
	})
	group.Go(func() {
		if err := s.Append(t.Context(), big, filled(0, 10_000)); !errors.Is(err, observation.ErrFull) {
			t.Errorf("a batch that does not fit: got %v, want ErrFull", err)
		}
	})
	group.Wait()
	for trial, want := range map[observation.Trial]int{small: 3, big: 0} {
		points, err := s.Points(t.Context(), trial, observation.Query{})
		if err != nil || len(points) != want {
			t.Errorf("trial %s has %d points, %v; want %d", trial, len(points), err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), big, filled(0, 10_000)); err != nil {
		t.Errorf("a batch that fits again: %v", err)
	}
}

func TestOpenOddPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c=d#e%20f&é.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		t.Fatalf("the store is not in its file: %v, %v", info, err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the file: %v", info.Mode())
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none", "x.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open in a directory that is not there: got %v, want ErrNotExist", err)
	}
}
