// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"

	"diwan.dev/diwan/observation/internal/sqlstore"
)

// The lock of processes that migrate; its name is the server's, not the
// database's.
const (
	lockName    = `left(concat('diwan.', sha1(database())), 64)`
	takeLock    = `SELECT coalesce(get_lock(` + lockName + `, 20), 0)`
	releaseLock = `DO release_lock(` + lockName + `)`
)

func dialect() *sqlstore.Dialect {
	return &sqlstore.Dialect{
		Schema: schema(),
		// Others may insert sources beside those that are locked.
		Session:      []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"},
		Begin:        "START TRANSACTION",
		Lock:         " FOR UPDATE",
		KeepExisting: " ON DUPLICATE KEY UPDATE stored = stored",
		MetricIs:     "CAST(p.metric_name AS BINARY) = ?",
		Answered:     answered,
		Repeat:       repeat,
		Explain:      explain,
	}
}

func schema() sqlstore.Schema {
	version, set, table := sqlstore.TableVersion("database()")
	return sqlstore.Schema{
		Lock:       lock,
		Unlock:     releaseLock,
		Abandon:    releaseLock,
		Version:    version,
		SetVersion: set,
		// Each statement ends the transaction that it is in, so each must be
		// harmless where it was run before.
		Migrations: [][]string{{
			table,
			`CREATE TABLE IF NOT EXISTS observation_sources (
				id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
				namespace  VARBINARY(255) NOT NULL,
				trial_name VARBINARY(255) NOT NULL,
				source     VARBINARY(2000) NOT NULL,
				stored     BIGINT NOT NULL,
				UNIQUE KEY (namespace, trial_name, source)
			) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC, CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
			`CREATE TABLE IF NOT EXISTS observation_points (
				id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
				source_id   BIGINT NOT NULL,
				time        CHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
				metric_name MEDIUMTEXT NOT NULL,
				value       MEDIUMTEXT NOT NULL,
				KEY (source_id)
			) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC, CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
		}},
	}
}

func lock(ctx context.Context, conn *sql.Conn) error {
	var got int
	if err := conn.QueryRowContext(ctx, takeLock).Scan(&got); err != nil {
		return err
	}
	if got != 1 {
		return errors.New("another process has been migrating the database for 20 s: try again when it is done")
	}
	return nil
}
