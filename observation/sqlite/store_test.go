// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/observationtest"
	"diwan.dev/diwan/observation/sqlite"
)

func open(ctx context.Context, dir string) (observation.Store, error) {
	return sqlite.Open(ctx, filepath.Join(dir, "observations.db"))
}

func TestDurable(t *testing.T) {
	t.Parallel()
	observationtest.RunDurable(t, open)
}

func TestStore(t *testing.T) {
	t.Parallel()
	observationtest.Run(t, open)
}
