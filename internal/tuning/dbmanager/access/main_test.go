// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"os"
	"testing"

	"diwan.dev/diwan/internal/testing/clustertest"
)

var cluster clustertest.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }
