// SPDX-License-Identifier: Apache-2.0

//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"context"
	"errors"
	"os"

	"diwan.dev/diwan/internal/platform/node/container"
)

// errSystem says why there is no Runtime on this system.
var errSystem = errors.New("cannot run containers of images on this system: they need Linux on amd64 or arm64")

// Runtime runs containers of images. This system has none.
type Runtime struct{}

var _ container.Runtime = (*Runtime)(nil)

// Allowed returns why this system cannot run containers of images.
func Allowed() error { return errSystem }

// New fails on this system.
func New(Config) (*Runtime, error) { return nil, errSystem }

// Overlay fails on this system.
func (r *Runtime) Overlay() error { return errSystem }

// Start fails on this system.
func (r *Runtime) Start(context.Context, container.Spec, *os.File) (container.Run, error) {
	return nil, errSystem
}

// Recover finds nothing on this system.
func (r *Runtime) Recover(context.Context) ([]container.Run, error) { return nil, nil }

// Mounts is false on this system.
func (r *Runtime) Mounts() bool { return false }

// Close does nothing on this system.
func (r *Runtime) Close() error { return nil }
