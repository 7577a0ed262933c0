// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
)

// canTmpfs reports whether this process may mount where the containers of the next one see it too.
func canTmpfs() bool { return rootless.Root() }

// mountTmpfs puts a file system in memory at dir, unless there is one. limit in
// bytes; 0 is half of the machine's memory, the kernel's default.
func mountTmpfs(dir string, limit int64) error {
	var has unix.Statfs_t
	if err := unix.Statfs(dir, &has); err != nil {
		return err
	}
	var parent unix.Stat_t
	var here unix.Stat_t
	if err := unix.Stat(filepath.Dir(dir), &parent); err != nil {
		return err
	}
	if err := unix.Stat(dir, &here); err != nil {
		return err
	}
	if has.Type == unix.TMPFS_MAGIC && here.Dev != parent.Dev {
		return nil
	}
	options := "mode=0777"
	if limit > 0 {
		options += fmt.Sprintf(",size=%d", limit)
	}
	return unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// unmountBelow takes away the file systems in memory that are mounted directly
// in dir. They carry another device number than dir.
func unmountBelow(dir string) error {
	var own unix.Stat_t
	if err := unix.Stat(dir, &own); err != nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		var st unix.Stat_t
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || strings.HasPrefix(e.Name(), "..") || unix.Stat(path, &st) != nil || st.Dev == own.Dev {
			continue
		}
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return err
		}
	}
	return nil
}

// blocks is the disk space of a file.
func blocks(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
