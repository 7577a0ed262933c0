// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/internal/sqlstore"
)

// applicationID marks a file as an observation store: "Diwn" in ASCII.
const applicationID = 0x4469776e

// schema migrates in one transaction.
func schema() sqlstore.Schema {
	return sqlstore.Schema{
		Lock: func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
			return err
		},
		Unlock:     "COMMIT",
		Abandon:    "ROLLBACK",
		Version:    fileVersion,
		SetVersion: func(n int) string { return fmt.Sprintf(`PRAGMA user_version = %d`, n) },
		Migrations: [][]string{{
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
		}, {
			// Points name their source by number, as in the other databases.
			`ALTER TABLE observation_sources RENAME TO former_sources`,
			`CREATE TABLE observation_sources (
				id         INTEGER PRIMARY KEY,
				namespace  TEXT    NOT NULL,
				trial_name TEXT    NOT NULL,
				source     TEXT    NOT NULL,
				stored     INTEGER NOT NULL,
				UNIQUE (namespace, trial_name, source)
			)`,
			`INSERT INTO observation_sources (namespace, trial_name, source, stored)
				SELECT namespace, trial_name, source, stored FROM former_sources`,
			`CREATE TABLE observation_points (
				id          INTEGER PRIMARY KEY,
				source_id   INTEGER NOT NULL,
				time        TEXT    NOT NULL,
				metric_name TEXT    NOT NULL,
				value       TEXT    NOT NULL
			)`,
			`INSERT INTO observation_points (id, source_id, time, metric_name, value)
				SELECT l.id, s.id, l.time, l.metric_name, l.value
				FROM observation_logs l JOIN observation_sources s
				ON s.namespace = l.namespace AND s.trial_name = l.trial_name AND s.source = l.source`,
			`CREATE INDEX observation_points_by_source ON observation_points (source_id)`,
			`DROP TABLE observation_logs`,
			`DROP TABLE former_sources`,
		}},
	}
}

const selectVersion = `SELECT
	(SELECT application_id FROM pragma_application_id),
	(SELECT user_version FROM pragma_user_version),
	(SELECT count(*) FROM sqlite_schema)`

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
	return 0, fmt.Errorf("%w: the file is another application's SQLite database; give the store its own file", observation.ErrCorrupt)
}
