// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// punch frees the first n bytes of a file and keeps its size.
func punch(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return ErrRetention
	}
	return err
}

// reserve allocates the first n bytes of a file and keeps its size. It does
// nothing where the file system cannot.
func reserve(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
