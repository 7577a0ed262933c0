// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	rootlesstest.Again(t, "Test[^A]")
}
