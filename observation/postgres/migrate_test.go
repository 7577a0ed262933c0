// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/observationtest"
	"diwan.dev/diwan/observation/observationtest/database"
	"diwan.dev/diwan/observation/postgres"
)

func TestMigrations(t *testing.T) {
	t.Parallel()
	server := database.Postgres().Shared(t)
	observationtest.RunMigrations(t, func(t *testing.T, name string) observationtest.Database {
		location, err := database.Within(t.Context(), server, name)
		if err != nil {
			t.Fatal(err)
		}
		return observationtest.Database{
			Open: func() (observation.Store, error) { return postgres.Open(t.Context(), location) },
			SQL:  database.SQL(t, location),
		}
	})
}
