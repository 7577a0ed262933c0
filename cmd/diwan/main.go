// SPDX-License-Identifier: Apache-2.0

// Command diwan tunes and trains models on a laptop as on a cluster.
package main

import (
	"os"

	"diwan.dev/diwan/internal/cli"
)

func main() { os.Exit(cli.MainAs(os.Args[0], os.Args[1:], cli.Std())) }
