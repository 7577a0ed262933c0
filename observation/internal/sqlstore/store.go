// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"diwan.dev/diwan/observation"
)

// connections bounds the connections of a store: one that writes, and some that
// read at once.
const connections = 5

// Store implements [observation.Store] on an SQL database.
type Store struct {
	name    string
	db      *sql.DB
	dialect *Dialect
	writer  *writer
	closing chan struct{}
	once    sync.Once // closes closing

	mu     sync.RWMutex // held for reading by each call, for writing by Close
	closed bool
}

var _ observation.Store = (*Store)(nil)

// Open brings the database to the newest version of the schema and opens the
// store in it. name is what errors call it: it must hold no password. The store
// closes db, also when Open fails.
func Open(ctx context.Context, name string, db *sql.DB, dialect *Dialect) (*Store, error) {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	s := &Store{name: name, db: db, dialect: dialect, closing: make(chan struct{})}
	l := link{db: db, dialect: dialect}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := l.connect(ctx)
	if err == nil {
		err = dialect.Schema.migrate(ctx, l.conn)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open observation store %s: %w", name, dialect.Explain(err)), l.close(), db.Close())
	}
	s.writer = startWriter(l, s.closing)
	return s, nil
}

// Append implements [observation.Store].
func (s *Store) Append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	err := errors.Join(t.Check(), b.Check())
	if err == nil {
		err = s.write(ctx, change{trial: t, batch: &b})
	}
	if err == nil || errOffset(err) {
		return err
	}
	return fmt.Errorf("cannot append to trial %s: %w", t, err)
}

// Offset implements [observation.Store].
func (s *Store) Offset(ctx context.Context, t observation.Trial, source string) (int64, error) {
	var stored int64
	err := s.read(ctx, func(ctx context.Context) error {
		err := s.db.QueryRowContext(ctx, s.dialect.text(selectOffset), t.Namespace, t.Name, source).Scan(&stored)
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
	err := s.read(ctx, func(ctx context.Context) (err error) {
		points, err = s.points(ctx, t, q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read points of trial %s: %w", t, err)
	}
	return points, nil
}

func (s *Store) points(ctx context.Context, t observation.Trial, q observation.Query) ([]observation.Point, error) {
	text, args := s.dialect.pointsQuery(t, q)
	found, err := s.db.QueryContext(ctx, s.dialect.text(text), args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var points []observation.Point
	for found.Next() {
		var p observation.Point
		var at string
		if err := found.Scan(&at, &p.Metric, &p.Value); err != nil {
			return nil, err
		}
		if p.Time, err = parseTime(at); err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, found.Err()
}

// DeleteSource implements [observation.Store].
func (s *Store) DeleteSource(ctx context.Context, t observation.Trial, source string) error {
	if source == "" { // cannot have been appended to
		return nil
	}
	if err := s.write(ctx, change{trial: t, source: source}); err != nil {
		return fmt.Errorf("cannot delete source %s of trial %s: %w", source, t, err)
	}
	return nil
}

// Delete implements [observation.Store].
func (s *Store) Delete(ctx context.Context, t observation.Trial) error {
	if err := s.write(ctx, change{trial: t}); err != nil {
		return fmt.Errorf("cannot delete observations of trial %s: %w", t, err)
	}
	return nil
}

// Close implements [observation.Store]. A call that waits to learn whether its
// change was committed, because the database is unavailable, ends with
// ErrClosed.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closing) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := errors.Join(s.writer.stop(), s.db.Close()); err != nil {
		return fmt.Errorf("cannot close observation store %s: %w", s.name, s.dialect.Explain(err))
	}
	return nil
}

func (s *Store) write(ctx context.Context, c change) error {
	return s.call(func() error { return s.writer.do(ctx, c) })
}

func (s *Store) read(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.call(func() error {
		err := f(limited)
		if err != nil && ctx.Err() != nil {
			return ctx.Err() // however the driver says it
		}
		return err
	})
}

// call runs f while the store cannot be closed, and adds the store's name to
// database errors.
func (s *Store) call(f func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return observation.ErrClosed
	}
	err := f()
	if err == nil || errOffset(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("store %s: %w", s.name, s.dialect.Explain(err))
}
