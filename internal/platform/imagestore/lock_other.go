// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package imagestore

import (
	"errors"
	"os"
)

var errLinux = errors.New("images can be kept on Linux only")

type syncer struct{}

func (s *syncer) sync(string) error { return errLinux }

func flock(*os.File) error              { return errLinux }
func probe(string) (format, error)      { return format{}, errLinux }
func openPath(string) (*os.File, error) { return nil, errLinux }
