// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package union

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

var errLinux = errors.New("images can be read on Linux only")

// View is a merge of layer directories, which only exists on Linux.
type View struct{}

// New returns a view of nothing.
func New([]*os.File) *View { return new(View) }

// Open fails.
func Open([]string) (*View, error) { return nil, errLinux }

// Close does nothing.
func (v *View) Close() error { return nil }

// Lstat fails.
func (v *View) Lstat(string) (unix.Stat_t, error) { return unix.Stat_t{}, errLinux }

// Stat fails.
func (v *View) Stat(string) (unix.Stat_t, error) { return unix.Stat_t{}, errLinux }

// IsDir is false.
func (v *View) IsDir(string) bool { return false }

// Open fails.
func (v *View) Open(string) (*os.File, error) { return nil, errLinux }

// OpenLink fails.
func (v *View) OpenLink(string) (*os.File, error) { return nil, errLinux }

// ReadFile fails.
func (v *View) ReadFile(string, int64) ([]byte, error) { return nil, errLinux }

// Readlink fails.
func (v *View) Readlink(string) (string, error) { return "", errLinux }

// ReadDir fails.
func (v *View) ReadDir(string) ([]string, error) { return nil, errLinux }

// Xattrs fails.
func (v *View) Xattrs(string) (map[string]string, error) { return nil, errLinux }
