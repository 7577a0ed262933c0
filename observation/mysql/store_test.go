// SPDX-License-Identifier: Apache-2.0

package mysql_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/mysql"
	"diwan.dev/diwan/observation/observationtest"
	"diwan.dev/diwan/observation/observationtest/database"
)

func TestMain(m *testing.M) { os.Exit(database.MariaDB().Main(m.Run)) }

// opener opens stores on the shared server, one for each directory.
func opener(t testing.TB) observationtest.Open {
	server := database.MariaDB().Shared(t)
	return func(ctx context.Context, dir string) (observation.Store, error) {
		location, err := database.Within(ctx, server, fmt.Sprintf("test_%x", sha256.Sum256([]byte(dir)))[:40])
		if err != nil {
			return nil, err
		}
		return mysql.Open(ctx, location)
	}
}

func TestDurable(t *testing.T) {
	t.Parallel()
	observationtest.RunDurable(t, opener(t))
}

func TestStore(t *testing.T) {
	t.Parallel()
	observationtest.Run(t, opener(t))
}

func TestServer(t *testing.T) {
	t.Parallel()
	server := database.MariaDB().Lend(t)
	observationtest.RunServer(t, server, func(ctx context.Context, address string) (observation.Store, error) {
		return mysql.Open(ctx, strings.Replace(server.URL(), server.Address(), address, 1))
	})
}
