// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package early

import (
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links a path may have, as in the kernel.
const maxLinks = 40

// kind is what a walk makes at its end where nothing is.
type kind int

const (
	nothing kind = iota
	directory
	file
)

// walk opens what a path names in the root directory root, as a program that is confined
// to it would find it: links are followed inside. Directories on the way that are missing
// are made, unless it makes nothing. It holds each directory that it has passed, and looks
// up one name at a time without following links, so nobody who renames meanwhile leads it
// out. The file that it returns is for its path only (O_PATH).
func walk(root int, path string, end kind) (int, error) {
	passed := []int{}
	defer func() {
		for _, fd := range passed {
			syscall.Close(fd)
		}
	}()
	at := func() int {
		if len(passed) == 0 {
			return root
		}
		return passed[len(passed)-1]
	}
	rest := names(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			if n := len(passed); n > 0 {
				syscall.Close(passed[n-1])
				passed = passed[:n-1]
			}
			continue
		}
		fd, err := openat(at(), name, oPath|oNofollow)
		if err == syscall.ENOENT && end != nothing {
			if err = create(at(), name, end == file && len(rest) == 0); err == nil || err == syscall.EEXIST {
				fd, err = openat(at(), name, oPath|oNofollow)
			}
		}
		if err != nil {
			return -1, err
		}
		var stat syscall.Stat_t
		if err := syscall.Fstat(fd, &stat); err != nil {
			syscall.Close(fd)
			return -1, err
		}
		if stat.Mode&syscall.S_IFMT != syscall.S_IFLNK {
			passed = append(passed, fd)
			continue
		}
		to, err := readlinkat(fd, "")
		syscall.Close(fd)
		if links++; err == nil && links > maxLinks {
			err = syscall.ELOOP
		}
		if err != nil {
			return -1, err
		}
		if strings.HasPrefix(to, "/") {
			for _, fd := range passed {
				syscall.Close(fd)
			}
			passed = passed[:0]
		}
		rest = append(names(to), rest...)
	}
	if len(passed) == 0 {
		return openat(root, ".", oPath)
	}
	fd := passed[len(passed)-1]
	passed = passed[:len(passed)-1]
	return fd, nil
}

// names are the parts of a path.
func names(path string) []string {
	var list []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			list = append(list, name)
		}
	}
	return list
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := syscall.Openat(dir, name, flags|oCloexec, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// create makes an empty file or directory.
func create(dir int, name string, plain bool) error {
	if !plain {
		return syscall.Mkdirat(dir, name, 0o755)
	}
	fd, err := syscall.Openat(dir, name, syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|oNofollow|oCloexec, 0o644)
	if err == nil {
		syscall.Close(fd)
	}
	return err
}

// own opens a directory of the root directory that is to be no link or file, and makes it
// so: an image may have anything there.
func own(root int, name string) (int, error) {
	for {
		fd, err := openat(root, name, oPath|oNofollow|oDirectory)
		switch err {
		case nil:
			return fd, nil
		case syscall.ENOTDIR, syscall.ELOOP:
			if err := syscall.Unlinkat(root, name); err != nil && err != syscall.ENOENT {
				return -1, err
			}
		case syscall.ENOENT:
			if err := syscall.Mkdirat(root, name, 0o755); err != nil && err != syscall.EEXIST {
				return -1, err
			}
		default:
			return -1, err
		}
	}
}

// isDir reports whether a file is a directory.
func isDir(fd int) (bool, error) {
	var stat syscall.Stat_t
	err := syscall.Fstat(fd, &stat)
	return stat.Mode&syscall.S_IFMT == syscall.S_IFDIR, err
}
