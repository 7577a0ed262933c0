// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// identity says which file it is and what state it is in: a change of its content changes its ctime.
func identity(info fs.FileInfo) (id fileID, changed time.Time, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, time.Time{}, false
	}
	changed = time.Unix(stat.Ctim.Unix())
	return fileID{Device: uint64(stat.Dev), Inode: stat.Ino, Size: stat.Size, Modified: info.ModTime().UnixNano(), Changed: changed.UnixNano()}, changed, true
}

// clone makes a file share the blocks of another one, where the file system can.
func clone(to, from *os.File) error { return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) }
