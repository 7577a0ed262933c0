// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"diwan.dev/diwan/observation/internal/sqlstore"
)

// connectTimeout bounds how long a server may take to accept a connection.
const connectTimeout = 5 * time.Second

// migrationLock is the advisory lock of processes that migrate: "Diwn" in ASCII.
const migrationLock = 0x4469776e

func dialect() *sqlstore.Dialect {
	return &sqlstore.Dialect{
		Schema:       schema(),
		Begin:        "BEGIN ISOLATION LEVEL READ COMMITTED",
		Lock:         " FOR UPDATE",
		KeepExisting: " ON CONFLICT DO NOTHING",
		MetricIs:     "p.metric_name = ?",
		Arrays:       true,
		Numbered:     true,
		Answered:     answered,
		Repeat:       repeat,
		Explain:      explain,
	}
}

func schema() sqlstore.Schema {
	version, set, table := sqlstore.TableVersion("current_schema()")
	return sqlstore.Schema{
		Lock:       lock,
		Unlock:     "COMMIT",
		Abandon:    "ROLLBACK",
		Version:    version,
		SetVersion: set,
		Migrations: [][]string{{
			table,
			`CREATE TABLE observation_sources (
				id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
				namespace  TEXT COLLATE "C" NOT NULL,
				trial_name TEXT COLLATE "C" NOT NULL,
				source     TEXT COLLATE "C" NOT NULL,
				stored     BIGINT NOT NULL,
				UNIQUE (namespace, trial_name, source)
			) WITH (fillfactor = 70)`,
			`CREATE TABLE observation_points (
				id          BIGINT GENERATED ALWAYS AS IDENTITY,
				source_id   BIGINT NOT NULL,
				time        TEXT COLLATE "C" NOT NULL,
				metric_name TEXT COLLATE "C" NOT NULL,
				value       TEXT COLLATE "C" NOT NULL
			)`,
			`CREATE INDEX observation_points_by_source ON observation_points (source_id)`,
		}},
	}
}

// lock begins a transaction that one process at a time can be in. All of a
// migration happens in it or nothing.
func lock(ctx context.Context, conn *sql.Conn) error {
	var encoding string
	if err := conn.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database has the encoding %s: create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrationLock)); err != nil {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return err
	}
	return nil
}
