// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"diwan.dev/diwan/observation"
)

// readers bounds the connections that read at once, and with them the memory
// of their caches (2 MB each).
const readers = 4

// Store implements [observation.Store] on one SQLite file.
type Store struct {
	path   string
	db     *sql.DB
	offset *sql.Stmt
	writer *writer

	mu     sync.RWMutex // held for reading by each call, for writing by Close
	closed bool
}

var _ observation.Store = (*Store)(nil)

// Open opens the store in the file path, which it creates, readable by the
// user alone, if it is not there; its directory must be. An error wraps
// [observation.ErrCorrupt], [observation.ErrNewer] or [observation.ErrFull]
// where that is the cause.
func Open(ctx context.Context, path string) (*Store, error) {
	s, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("cannot open observation store %s: %w", path, explain(err))
	}
	return s, nil
}

func open(ctx context.Context, path string) (_ *Store, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", source(path))
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, db: db}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	db.SetMaxOpenConns(1 + readers)
	db.SetMaxIdleConns(1 + readers)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if s.offset, err = db.PrepareContext(ctx, selectOffset); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if s.writer, err = startWriter(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// source returns the driver's name for the file path. A commit waits until
// the disk has it (synchronous=FULL); busy_timeout, in milliseconds, matters
// only when something else, like a backup, holds the file.
func source(path string) string {
	options := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}
	return u.String()
}

// Append implements [observation.Store].
func (s *Store) Append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	err := b.Check()
	if err == nil {
		err = s.write(ctx, func(ctx context.Context, w *writer) error { return w.append(ctx, t, b) })
	}
	var offset *observation.OffsetError
	if err == nil || errors.As(err, &offset) {
		return err
	}
	return fmt.Errorf("cannot append to trial %s: %w", t, err)
}

// Offset implements [observation.Store].
func (s *Store) Offset(ctx context.Context, t observation.Trial, source string) (int64, error) {
	var stored int64
	err := s.read(func() error {
		err := s.offset.QueryRowContext(ctx, t.Namespace, t.Name, source).Scan(&stored)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot read offset of source %s of trial %s: %w", source, t, err)
	}
	return stored, nil
}

// Points implements [observation.Store].
func (s *Store) Points(ctx context.Context, t observation.Trial, q observation.Query) ([]observation.Point, error) {
	var points []observation.Point
	err := s.read(func() (err error) {
		points, err = s.points(ctx, t, q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read points of trial %s: %w", t, err)
	}
	return points, nil
}

func (s *Store) points(ctx context.Context, t observation.Trial, q observation.Query) ([]observation.Point, error) {
	text, args := pointsQuery(t, q)
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var points []observation.Point
	for rows.Next() {
		var p observation.Point
		var at string
		if err := rows.Scan(&at, &p.Metric, &p.Value); err != nil {
			return nil, err
		}
		if p.Time, err = parseTime(at); err != nil {
			return nil, fmt.Errorf("%w: %w", observation.ErrCorrupt, err)
		}
		points = append(points, p)
	}
	return points, rows.Err()
}

// DeleteSource implements [observation.Store].
func (s *Store) DeleteSource(ctx context.Context, t observation.Trial, source string) error {
	err := s.write(ctx, func(ctx context.Context, w *writer) error { return w.deleteSource(ctx, t, source) })
	if err != nil {
		return fmt.Errorf("cannot delete source %s of trial %s: %w", source, t, err)
	}
	return nil
}

// Delete implements [observation.Store].
func (s *Store) Delete(ctx context.Context, t observation.Trial) error {
	err := s.write(ctx, func(ctx context.Context, w *writer) error { return w.deleteTrial(ctx, t) })
	if err != nil {
		return fmt.Errorf("cannot delete observations of trial %s: %w", t, err)
	}
	return nil
}

// Close implements [observation.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := errors.Join(s.writer.stop(), s.offset.Close(), s.db.Close()); err != nil {
		return fmt.Errorf("cannot close observation store %s: %w", s.path, explain(err))
	}
	return nil
}

func (s *Store) write(ctx context.Context, change change) error {
	return s.read(func() error { return s.writer.do(ctx, change) })
}

// read runs f while the store cannot be closed, and names the store in what
// the database says.
func (s *Store) read(f func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return observation.ErrClosed
	}
	err := f()
	if explained := explain(err); explained != err {
		return fmt.Errorf("store %s: %w", s.path, explained)
	}
	return err
}
