// SPDX-License-Identifier: Apache-2.0

// Command diwan-entry runs a trial's program in its container on a cluster: see package
// entry.
package main

import (
	"os"

	"diwan.dev/diwan/internal/tuning/collector/entry"
)

func main() { os.Exit(entry.Main(os.Args[1:])) }
