// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"diwan.dev/diwan/observation"
)

// The statements of the store.
const (
	selectOffset = `SELECT stored FROM observation_sources WHERE namespace = ? AND trial_name = ? AND source = ?`
	insertSource = `INSERT INTO observation_sources (stored, namespace, trial_name, source) VALUES (?, ?, ?, ?)`
	updateSource = `UPDATE observation_sources SET stored = ? WHERE namespace = ? AND trial_name = ? AND source = ?`
	deleteSource = `DELETE FROM observation_sources WHERE namespace = ? AND trial_name = ? AND source = ?`
	deleteTrial  = `DELETE FROM observation_sources WHERE namespace = ? AND trial_name = ?`

	insertPoint        = `INSERT INTO observation_logs (namespace, trial_name, source, time, metric_name, value) VALUES (?, ?, ?, ?, ?, ?)`
	selectPoints       = `SELECT time, metric_name, value FROM observation_logs WHERE namespace = ? AND trial_name = ?`
	deleteSourcePoints = `DELETE FROM observation_logs WHERE namespace = ? AND trial_name = ? AND source = ?`
	deleteTrialPoints  = `DELETE FROM observation_logs WHERE namespace = ? AND trial_name = ?`
)

// pointsQuery returns the statement, and its arguments, that selects the points
// of a query in their order.
func pointsQuery(t observation.Trial, q observation.Query) (string, []any) {
	text, args := selectPoints, []any{t.Namespace, t.Name}
	if q.Metric != "" {
		text, args = text+" AND metric_name = ?", append(args, q.Metric)
	}
	if !q.Start.IsZero() {
		text, args = text+" AND time >= ?", append(args, formatTime(q.Start))
	}
	if !q.End.IsZero() {
		text, args = text+" AND time <= ?", append(args, formatTime(q.End))
	}
	text += " ORDER BY time, id"
	if q.Limit > 0 {
		text, args = text+" LIMIT ?", append(args, q.Limit)
	}
	return text, args
}

// timeFormat has a fixed width, so that times sort as their texts do.
const timeFormat = "2006-01-02T15:04:05.000000000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

func parseTime(s string) (time.Time, error) { return time.Parse(timeFormat, s) }

// applicationID marks a file as an observation store: "Diwn" in ASCII.
const applicationID = 0x4469776e

const selectVersion = `SELECT
	(SELECT application_id FROM pragma_application_id),
	(SELECT user_version FROM pragma_user_version),
	(SELECT count(*) FROM sqlite_schema)`

// migrations bring a file from version i, its index, to i+1.
func migrations() [][]string {
	return [][]string{{
		`CREATE TABLE observation_sources (
			namespace   VARCHAR(255) NOT NULL,
			trial_name  VARCHAR(255) NOT NULL,
			source      VARCHAR(255) NOT NULL,
			stored      BIGINT       NOT NULL,
			PRIMARY KEY (namespace, trial_name, source)
		) WITHOUT ROWID`,
		`CREATE TABLE observation_logs (
			id          INTEGER      PRIMARY KEY,
			namespace   VARCHAR(255) NOT NULL,
			trial_name  VARCHAR(255) NOT NULL,
			source      VARCHAR(255) NOT NULL,
			time        CHAR(30)     NOT NULL,
			metric_name VARCHAR(255) NOT NULL,
			value       TEXT         NOT NULL
		)`,
		`CREATE INDEX observation_logs_by_trial ON observation_logs (namespace, trial_name, time)`,
		fmt.Sprintf(`PRAGMA application_id = %d`, applicationID),
	}}
}

// migrate brings the file behind conn to the newest version, in one
// transaction.
func migrate(ctx context.Context, conn *sql.Conn) error {
	return transact(ctx, conn, func() error {
		version, err := fileVersion(ctx, conn)
		if err != nil {
			return err
		}
		steps := migrations()
		if version > len(steps) {
			return fmt.Errorf("%w: the file has version %d and this program knows versions up to %d; use the program that wrote it, or a newer one",
				observation.ErrNewer, version, len(steps))
		}
		for _, step := range steps[version:] {
			for _, statement := range step {
				if _, err := conn.ExecContext(ctx, statement); err != nil {
					return err
				}
			}
		}
		if version == len(steps) {
			return nil
		}
		_, err = conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, len(steps)))
		return err
	})
}

// fileVersion returns the version of a store's file, 0 for an empty one.
func fileVersion(ctx context.Context, conn *sql.Conn) (int, error) {
	var id, version, objects int
	err := conn.QueryRowContext(ctx, selectVersion).Scan(&id, &version, &objects)
	if err != nil {
		return 0, err
	}
	switch {
	case id == applicationID && version > 0:
		return version, nil
	case id == 0 && version == 0 && objects == 0:
		return 0, nil
	}
	return 0, fmt.Errorf("%w: the file is an SQLite database of something else; give the store a file of its own", observation.ErrCorrupt)
}
