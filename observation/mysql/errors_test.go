// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"diwan.dev/diwan/observation"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, says string
		err          error
		unavailable  bool
	}{
		{"the server starts, or is not there yet", "check that the server runs", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{"the server stops", "", &mysql.MySQLError{Number: shutdown}, true},
		{"others have all connections", "", &mysql.MySQLError{Number: tooManyConnections}, true},
		{"the server ended the connection at once", "", mysql.ErrInvalidConn, true},
		{"a wrong password stays wrong", "password", &mysql.MySQLError{Number: accessDenied}, false},
		{"a database does not make itself", "CREATE DATABASE", &mysql.MySQLError{Number: unknownDatabase}, false},
		{"an unknown host is a typing error", "check the host", &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, false},
	} {
		if err := explain(tc.err); errors.Is(err, observation.ErrUnavailable) != tc.unavailable || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}
