// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package imagestore

import (
	"context"
	"errors"
	"io"
	"os"
)

var errLinux = errors.New("images can be kept on Linux only")

type syncer struct{}

func (s *syncer) sync(string) error { return errLinux }

func lock(context.Context, string) (io.Closer, error)    { return nil, errLinux }
func lockDir(context.Context, string) (io.Closer, error) { return nil, errLinux }
func tryLock(string) (io.Closer, error)                  { return nil, errLinux }
func flock(*os.File) error                               { return errLinux }
func probe(string) (format, error)                       { return format{}, errLinux }
func openPath(string) (*os.File, error)                  { return nil, errLinux }
