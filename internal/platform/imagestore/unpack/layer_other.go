// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package unpack

import (
	"context"
	"errors"
	"io"
	"os"

	"diwan.dev/diwan/internal/platform/imagestore/union"
)

var errLinux = errors.New("images can be unpacked on Linux only")

// Unpacked is a layer, which can be unpacked on Linux only.
type Unpacked struct{}

// Layer fails.
func Layer(context.Context, string, io.Reader, Options) (*Unpacked, error) { return nil, errLinux }

// Settle fails.
func (u *Unpacked) Settle(*union.View) (Report, error) { return Report{}, errLinux }

// RemoveAll removes a directory tree.
func RemoveAll(name string) error { return os.RemoveAll(name) }
