// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"diwan.dev/diwan/observation"
)

// code returns the SQLSTATE of the server's answer, "" for other errors.
func code(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// answered reports whether the server rejected a statement and keeps serving
// the connection: an error with which it closes the connection does not
// count.
func answered(err error) bool {
	c := code(err)
	return c != "" && !strings.HasPrefix(c, "57P") && !strings.HasPrefix(c, "08") && c != "25P03" && c != "25P04" && !connecting(err)
}

// connecting reports whether an error is of making a connection.
func connecting(err error) bool {
	var failed *pgconn.ConnectError
	return errors.As(err, &failed)
}

// repeat reports whether other transactions were in the way: a serialization
// failure, a deadlock, a lock that was not to be had, or a unique key that
// another transaction made at the same moment.
func repeat(err error) bool {
	switch code(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	return false
}

// explain adds an explanation and a hint to a database error.
func explain(err error) error {
	var answer *pgconn.PgError
	if connecting(err) && errors.As(err, &answer) {
		err = answer // without the attempts before it, such as one with TLS
	}
	var unreachable *net.OpError
	var unknown *net.DNSError
	switch c := code(err); {
	case c == "28P01" || c == "28000":
		return fmt.Errorf("%w: check the user and the password, and what pg_hba.conf allows", err)
	case c == "3D000":
		return fmt.Errorf("%w: create it with CREATE DATABASE, or specify another", err)
	case c == "42501":
		return fmt.Errorf("%w: %w; grant the user CREATE and USAGE on the schema", fs.ErrPermission, err)
	case c == "3F000":
		return fmt.Errorf("%w: create the schema in search_path", err)
	case c == "25006":
		return fmt.Errorf("%w: specify the primary server; with several hosts, add target_session_attrs=read-write", err)
	case c == "53100":
		return fmt.Errorf("%w: %w; free some space on the server's disk", observation.ErrFull, err)
	case strings.HasPrefix(c, "XX"):
		return fmt.Errorf("%w: %w; restore the database from a backup", observation.ErrCorrupt, err)
	case strings.HasPrefix(c, "57P0") || c == "53300": // it starts or stops; too many connections
		return fmt.Errorf("%w: %w", observation.ErrUnavailable, err)
	case c == "" && connecting(err) && errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Errorf("%w: check the host", err)
	case c == "" && connecting(err) && errors.As(err, &unreachable):
		return fmt.Errorf("%w: %w: check that the server runs and that its host and port are right", observation.ErrUnavailable, err)
	case c == "" && connecting(err) && errors.Is(err, io.ErrUnexpectedEOF): // a server that stops
		return fmt.Errorf("%w: %w", observation.ErrUnavailable, err)
	}
	return err
}
