// SPDX-License-Identifier: Apache-2.0

// Command diwan-elastic is `diwan elastic` alone, for images of workers: a tenth of the size.
package main

import (
	"os"

	"diwan.dev/diwan/internal/training/elasticcmd"
)

func main() {
	os.Exit(elasticcmd.Main())
}
