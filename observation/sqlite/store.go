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

	_ "modernc.org/sqlite" // the driver "sqlite"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/internal/sqlstore"
)

// Open opens the store in the file path, which it creates if needed, readable
// only by the user; its directory must exist. An error wraps
// [observation.ErrCorrupt], [observation.ErrNewer] or [observation.ErrFull]
// if that is the cause.
func Open(ctx context.Context, path string) (observation.Store, error) {
	return open(ctx, path)
}

// open opens the store with more PRAGMAs for each connection.
func open(ctx context.Context, path string, pragmas ...string) (*sqlstore.Store, error) {
	db, err := file(path, pragmas...)
	if err != nil {
		return nil, fmt.Errorf("cannot open observation store %s: %w", path, err)
	}
	return sqlstore.Open(ctx, path, db, dialect())
}

// file creates a store's file if it is not there.
func file(path string, pragmas ...string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
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
	return sql.Open("sqlite", source(path, pragmas...))
}

// source returns the driver's name for the file path. A commit waits until
// the disk has it (synchronous=FULL); busy_timeout, in milliseconds, matters
// only when another process writes, or something like a backup holds the file.
func source(path string, pragmas ...string) string {
	options := url.Values{"_pragma": append([]string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}, pragmas...)}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}
	return u.String()
}

// dialect is SQLite's. Its writers exclude each other: none has to lock rows.
func dialect() *sqlstore.Dialect {
	return &sqlstore.Dialect{
		Schema:       schema(),
		Begin:        "BEGIN IMMEDIATE",
		KeepExisting: " ON CONFLICT DO NOTHING",
		MetricIs:     "p.metric_name = ?",
		Answered:     func(err error) bool { return !errors.Is(err, context.DeadlineExceeded) },
		Repeat:       func(error) bool { return false },
		Explain:      explain,
	}
}
