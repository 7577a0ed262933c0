// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// flatten copies layers, the lowest first, into a new directory as an overlay would show
// them: a character device 0:0 hides the file below it, and a directory with the attribute
// overlay.opaque what is below it. Where the file system can, contents are shared until they
// change.
func flatten(layers []string, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	c := &copier{links: map[[2]uint64]string{}, times: map[string]unix.Stat_t{}}
	for _, layer := range layers {
		clear(c.links)
		if err := c.dir(layer, to); err != nil {
			return fmt.Errorf("cannot copy the layer %s: %w", layer, err)
		}
	}
	for dir, stat := range c.times {
		c.stamp(dir, &stat)
	}
	return nil
}

type copier struct {
	links map[[2]uint64]string   // first copies of files of this layer with several names
	times map[string]unix.Stat_t // directories, whose modes and times come last
}

// dir copies a directory's content into an existing one.
func (c *copier) dir(from, to string) error {
	var stat unix.Stat_t
	if err := unix.Lstat(from, &stat); err != nil {
		return err
	}
	if opaque(from) {
		entries, err := os.ReadDir(to)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := os.RemoveAll(filepath.Join(to, entry.Name())); err != nil {
				return err
			}
		}
	}
	c.times[to] = stat
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := c.entry(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) entry(from, to string) error {
	var stat unix.Stat_t
	if err := unix.Lstat(from, &stat); err != nil {
		return err
	}
	kind := stat.Mode & unix.S_IFMT
	if kind == unix.S_IFDIR {
		if info, err := os.Lstat(to); err == nil && !info.IsDir() {
			if err := os.Remove(to); err != nil {
				return err
			}
		}
		if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := c.dir(from, to); err != nil {
			return err
		}
		return attributes(from, to)
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if kind == unix.S_IFCHR && stat.Rdev == 0 {
		return nil
	}
	key := [2]uint64{stat.Dev, stat.Ino}
	if first, ok := c.links[key]; ok && stat.Nlink > 1 {
		return os.Link(first, to)
	}
	c.links[key] = to
	switch kind {
	case unix.S_IFREG:
		if err := copyContent(from, to); err != nil {
			return err
		}
	case unix.S_IFLNK:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, to); err != nil {
			return err
		}
	default:
		if err := unix.Mknod(to, stat.Mode, int(stat.Rdev)); errors.Is(err, unix.EPERM) {
			return nil // a device, which nobody could open
		} else if err != nil {
			return err
		}
	}
	c.stamp(to, &stat)
	return attributes(from, to)
}

// stamp gives a copy the owner, mode and times.
func (c *copier) stamp(path string, stat *unix.Stat_t) {
	unix.Lchown(path, int(stat.Uid), int(stat.Gid)) // a user's layers have one owner
	if stat.Mode&unix.S_IFMT != unix.S_IFLNK {
		unix.Chmod(path, stat.Mode&0o7777)
	}
	unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{stat.Atim, stat.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

func copyContent(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return out.Close()
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// opaque reports whether a directory of a layer hides what is below it.
func opaque(dir string) bool {
	for _, name := range []string{"trusted.overlay.opaque", "user.overlay.opaque"} {
		value := make([]byte, 1)
		if n, err := unix.Lgetxattr(dir, name, value); err == nil && n == 1 && value[0] == 'y' {
			return true
		}
	}
	return false
}

// attributes copies extended attributes, but for the overlay's.
func attributes(from, to string) error {
	size, err := unix.Llistxattr(from, nil)
	if err != nil || size == 0 {
		return nil // the file system has none
	}
	list := make([]byte, size)
	if size, err = unix.Llistxattr(from, list); err != nil {
		return err
	}
	for name := range bytes.SplitSeq(list[:size], []byte{0}) {
		name := string(name)
		if name == "" || strings.HasPrefix(name, "trusted.") || strings.HasPrefix(name, "user.overlay.") {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(from, name, value)
		if err != nil {
			continue
		}
		if err := unix.Lsetxattr(to, name, value[:n], 0); err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	return nil
}
