// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package process

import (
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
)

// mountUnion mounts layers over each other at a directory.
func mountUnion(at, empty string, layers []string) error {
	_, ordinary := rootless.Owner()
	return early.Union(at, empty, layers, ordinary)
}
