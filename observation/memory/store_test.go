// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"testing"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
	"diwan.dev/diwan/observation/observationtest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	observationtest.Run(t, func(context.Context, string) (observation.Store, error) { return memory.New(), nil })
}
