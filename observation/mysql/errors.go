// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/go-sql-driver/mysql"

	"diwan.dev/diwan/observation"
)

// The server's errors that mean something to a store.
const (
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

// answered reports whether the server refused a statement and goes on serving
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

// explain adds to an error of the database what it means and what to do.
func explain(err error) error {
	var unreachable *net.OpError
	switch number(err) {
	case accessDenied:
		return fmt.Errorf("%w: check the user and the password", err)
	case accessDeniedForDatabase, tableAccessDenied, columnAccessDenied:
		return fmt.Errorf("%w: %w; grant the user all privileges on the database", fs.ErrPermission, err)
	case unknownDatabase:
		return fmt.Errorf("%w: make it with CREATE DATABASE, or name another", err)
	case readOnly:
		return fmt.Errorf("%w: name the primary server", err)
	case tableFull, noSpace, recordFileFull:
		return fmt.Errorf("%w: %w; free some space on the server's disk", observation.ErrFull, err)
	case corruptTable, corruptIndex:
		return fmt.Errorf("%w: %w; restore the database from a copy", observation.ErrCorrupt, err)
	case packetTooLarge:
		return fmt.Errorf("%w: raise max_allowed_packet of the server", err)
	}
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return fmt.Errorf("%w: raise max_allowed_packet of the server", err)
	}
	if errors.As(err, &unreachable) && unreachable.Op == "dial" {
		return fmt.Errorf("%w: check that the server runs and that its host and port are right", err)
	}
	return err
}
