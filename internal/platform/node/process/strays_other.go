// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// killMarked kills the run's process group. Processes that left it are not
// found on this system.
func killMarked(_ container.ID, group int) bool {
	return group > 0 && unix.Kill(-group, unix.SIGKILL) == nil
}
