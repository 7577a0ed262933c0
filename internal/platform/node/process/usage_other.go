// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"errors"

	"diwan.dev/diwan/internal/platform/node/container"
)

// Usage is not known on this system.
func (r *run) Usage() (container.Usage, error) {
	return container.Usage{}, errors.New("cannot measure a container on this system")
}
