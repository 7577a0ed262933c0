// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// StartWriting has the kernel begin to write a range of a file, of which length 0 is the rest, to the disk, so
// that a later sync waits for less. It promises nothing.
func StartWriting(f *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
