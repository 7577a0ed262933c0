// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/go-sql-driver/mysql"

	"diwan.dev/diwan/observation"
)

// The server's errors that mean something to a store.
const (
	tooManyConnections      = 1040
	accessDeniedForDatabase = 1044
	accessDenied            = 1045
	unknownDatabase         = 1049
	shutdown                = 1053
	tableFull               = 1114
	tableAccessDenied       = 1142
	packetTooLarge          = 1153
	lockWait                = 1205
	deadlock                = 1213
	readOnly                = 1290
	columnAccessDenied      = 1143
	noSpace                 = 1021
	connectionKilled        = 1927
	recordFileFull          = 1041
	corruptTable            = 1194
	corruptIndex            = 1712
)

// number returns the number of the server's answer, 0 for other errors.
func number(err error) uint16 {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return answer.Number
	}
	return 0
}

// answered reports whether the server rejected a statement and keeps serving
// the connection.
func answered(err error) bool {
	switch number(err) {
	case 0, shutdown, connectionKilled, accessDenied, accessDeniedForDatabase, unknownDatabase:
		return false
	}
	return true
}

// repeat reports whether other transactions were in the way.
func repeat(err error) bool {
	n := number(err)
	return n == deadlock || n == lockWait
}

// explain adds an explanation and a hint to a database error.
func explain(err error) error {
	var unreachable *net.OpError
	switch number(err) {
	case accessDenied:
		return fmt.Errorf("%w: check the user and the password", err)
	case accessDeniedForDatabase, tableAccessDenied, columnAccessDenied:
		return fmt.Errorf("%w: %w; grant the user all privileges on the database", fs.ErrPermission, err)
	case unknownDatabase:
		return fmt.Errorf("%w: create it with CREATE DATABASE, or specify another", err)
	case readOnly:
		return fmt.Errorf("%w: specify the primary server", err)
	case tableFull, noSpace, recordFileFull:
		return fmt.Errorf("%w: %w; free some space on the server's disk", observation.ErrFull, err)
	case corruptTable, corruptIndex:
		return fmt.Errorf("%w: %w; restore the database from a backup", observation.ErrCorrupt, err)
	case shutdown, connectionKilled, tooManyConnections:
		return fmt.Errorf("%w: %w", observation.ErrUnavailable, err)
	case packetTooLarge:
		return fmt.Errorf("%w: raise the server's max_allowed_packet", err)
	}
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return fmt.Errorf("%w: raise the server's max_allowed_packet", err)
	}
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Errorf("%w: check the host", err)
	case errors.As(err, &unreachable):
		return fmt.Errorf("%w: %w: check that the server runs and that its host and port are right", observation.ErrUnavailable, err)
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, driver.ErrBadConn): // a server that stops
		return fmt.Errorf("%w: %w", observation.ErrUnavailable, err)
	}
	return err
}
