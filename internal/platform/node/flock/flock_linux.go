// SPDX-License-Identifier: Apache-2.0

package flock

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Attempts bounds the wait for a lock, one Pause each. Locks are held for moments.
const (
	Attempts = 1000
	Pause    = time.Millisecond
)

// Try opens and locks what is at the path; how is unix.LOCK_SH or LOCK_EX. The error is
// unix.EWOULDBLOCK if another holds it, and fs.ErrNotExist if it was removed in the
// meantime.
func Try(path string, how int) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	opened, err := file.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(path); err == nil && !os.SameFile(opened, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
