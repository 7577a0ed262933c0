// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "diwan.dev/diwan/internal/platform/node/container"

// release: nothing is ever mounted on this system.
func release([]container.Mount) {}
