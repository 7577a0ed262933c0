// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"diwan.dev/diwan/observation"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for code, tc := range map[string]struct {
		reason, says string
		is           error
	}{
		"57P03": {"the server starts", "", observation.ErrUnavailable},
		"57P01": {"the server stops", "", observation.ErrUnavailable},
		"53300": {"others have all connections", "", observation.ErrUnavailable},
		"28P01": {"a wrong password stays wrong", "password", nil},
		"3D000": {"a database does not make itself", "CREATE DATABASE", nil},
		"53100": {"no space", "free some space", observation.ErrFull},
	} {
		err := explain(fmt.Errorf("cannot ping: %w", &pgconn.PgError{Code: code}))
		if !strings.Contains(err.Error(), tc.says) || errors.Is(err, observation.ErrUnavailable) != (tc.is == observation.ErrUnavailable) || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: %s: %v", code, tc.reason, err)
		}
	}
	if err := explain(&net.DNSError{IsNotFound: true}); errors.Is(err, observation.ErrUnavailable) {
		t.Errorf("an unknown host is waited for: %v", err)
	}
}
