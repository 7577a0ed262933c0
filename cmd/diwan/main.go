// SPDX-License-Identifier: Apache-2.0

// Command diwan tunes and trains models on a laptop as on a cluster.
package main

import (
	"os"

	"diwan.dev/diwan/internal/diwan/commands"
)

func main() { os.Exit(commands.Main()) }
