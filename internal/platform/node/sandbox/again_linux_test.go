// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"testing"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	rootlesstest.Need(t)
	path, err := hostile()
	if err != nil {
		t.Fatal(err)
	}
	os.Setenv(hostileEnv, path) // of this process, too, where it means the same
	rootlesstest.Again(t, "Test[^A]|TestAmong")
}
