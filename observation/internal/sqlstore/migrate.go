// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"diwan.dev/diwan/observation"
)

// migrate brings the database behind conn to the newest version. Of several
// processes one does it, and the others wait.
func (s *Schema) migrate(ctx context.Context, conn *sql.Conn) error {
	if err := s.Lock(ctx, conn); err != nil {
		return err
	}
	if err := s.steps(ctx, conn); err != nil {
		// A failure may have undone everything already; then this one's
		// complaint says nothing.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), s.Abandon)
		return err
	}
	_, err := conn.ExecContext(ctx, s.Unlock)
	return err
}

func (s *Schema) steps(ctx context.Context, conn *sql.Conn) error {
	version, err := s.Version(ctx, conn)
	if err != nil {
		return err
	}
	if newest := len(s.Migrations); version > newest {
		return fmt.Errorf("%w: it has version %d and this program knows versions up to %d; use the program that wrote it, or a newer one",
			observation.ErrNewer, version, newest)
	}
	for i, step := range s.Migrations[version:] {
		for _, statement := range append(step, s.SetVersion(version+i+1)) {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("cannot migrate the schema to version %d: %w", version+i+1, err)
			}
		}
	}
	return nil
}

// TableVersion reads and writes the version in the table observation_schema.
// schema is the expression for the schema that tables are created in.
func TableVersion(schema string) (version func(context.Context, *sql.Conn) (int, error), set func(int) string, table string) {
	exists := `SELECT count(*) FROM information_schema.tables WHERE table_schema = ` + schema + ` AND table_name = 'observation_schema'`
	version = func(ctx context.Context, conn *sql.Conn) (int, error) {
		var n int
		err := conn.QueryRowContext(ctx, exists).Scan(&n)
		if err == nil && n > 0 {
			err = conn.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM observation_schema`).Scan(&n)
		}
		return n, err
	}
	set = func(n int) string {
		return fmt.Sprintf(`INSERT INTO observation_schema (version) VALUES (%d)`, n)
	}
	return version, set, `CREATE TABLE IF NOT EXISTS observation_schema (version INT NOT NULL)`
}
