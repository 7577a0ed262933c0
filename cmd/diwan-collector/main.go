// SPDX-License-Identifier: Apache-2.0

// Command diwan-collector collects the metrics of a trial from a container of the
// trial's Pod, on a cluster: see package sidecar.
package main

import (
	"os"

	"diwan.dev/diwan/internal/tuning/collector/sidecar"
)

func main() { os.Exit(sidecar.Main(os.Args[1:])) }
