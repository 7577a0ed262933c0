// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/internal/sqlstore"
)

// Open opens the store in the database that a URL names, such as
// mysql://user:password@host:3306/database?tls=true, and makes its tables if
// they are not there; the database must be. The parameters are
//
//	socket    the path of a Unix socket, instead of host and port
//	tls       false (default), true, preferred, or skip-verify
//	ca        a file with the certificates that the server's is checked with
//	cert, key files with the client's certificate and its key
//
// An error names no password.
func Open(ctx context.Context, location string) (observation.Store, error) {
	config, name, err := parse(location)
	if err != nil {
		return nil, fmt.Errorf("cannot open observation store: %w", err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("cannot open observation store %s: %w", name, err)
	}
	return sqlstore.Open(ctx, name, sql.OpenDB(connector), dialect())
}
