// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/internal/sqlstore"
)

var errMalformed = errors.New("its URL is malformed")

// Open opens the store in the database at a URL, such as
// postgres://user:password@host:5432/database?sslmode=verify-full, and creates
// its tables if needed; the database must exist. The parameters are those of
// PostgreSQL's own clients, and so are the environment variables that supply
// what the URL omits, such as PGPASSWORD and PGPASSFILE. Errors contain no
// password.
func Open(ctx context.Context, location string) (observation.Store, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("cannot open observation store: %w", errMalformed)
	}
	config, err := pgx.ParseConfig(location)
	if err != nil {
		// The text of err itself repeats the URL, with what parameters hold.
		return nil, fmt.Errorf("cannot open observation store %s: malformed parameters: %w", name(u), cmp.Or(errors.Unwrap(err), errMalformed))
	}
	// One round trip a statement, and no state that a connection pooler
	// between would lose.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "diwan"
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	return sqlstore.Open(ctx, name(u), stdlib.OpenDB(*config), dialect())
}

// name is the store's name in errors: the URL without secrets.
func name(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, User: user(u), Host: u.Host, Path: u.Path}).String()
}

func user(u *url.URL) *url.Userinfo {
	if u.User.Username() == "" {
		return nil
	}
	return url.User(u.User.Username())
}
