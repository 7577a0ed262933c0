// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/flock"
)

// Empty directories and files that are made on the host so that something can be
// mounted there carry a mark, an extended attribute. So every runtime of the
// machine knows them, and the last run that needed one removes it, whichever run
// made it and whatever became of the process that did.
//
// The kernel takes a mount away with its mount point. A run that is being
// started therefore holds a shared lock on each until its processes exist and
// can be seen to use it; removing needs the exclusive lock.

// markNames are the attributes that can be the mark: root's, and a user's.
var markNames = []string{"trusted.diwan.mountpoint", "user.diwan.mountpoint"}

// mark marks what was just created. If the file system has no extended attributes, it
// stays.
func mark(path string) {
	for _, name := range markNames {
		if unix.Setxattr(path, name, []byte("1"), 0) == nil {
			return
		}
	}
}

func isMarked(path string) bool {
	return slices.ContainsFunc(markNames, func(name string) bool {
		n, err := unix.Getxattr(path, name, nil)
		return err == nil && n > 0
	})
}

// mountpoints are the mount points on the host of a run that is being started.
type mountpoints struct{ held []*os.File }

// close gives the locks up.
func (p *mountpoints) close() {
	for _, file := range p.held {
		file.Close()
	}
}

// ensure makes the target of a mount where it is missing: a directory for a
// directory, an empty file for a file. What it makes on the host, and not inside
// one of the earlier mounts, is marked.
func (p *mountpoints) ensure(m container.Mount, earlier []container.Mount) error {
	source, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	for range flock.Attempts {
		err = p.hold(m.Target)
		if errors.Is(err, fs.ErrNotExist) {
			if err = create(m.Target, source.IsDir(), earlier); err == nil {
				err = p.hold(m.Target)
			}
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(time.Millisecond) // another run is removing it
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil // a stranger holds the lock, and so nobody can remove it
	}
	return err
}

// hold locks an existing target of the kind that create makes. It need not have
// its mark yet.
func (p *mountpoints) hold(target string) error {
	info, err := os.Stat(target)
	if err != nil || !info.IsDir() && (!info.Mode().IsRegular() || info.Size() > 0) {
		return err
	}
	file, err := flock.Try(target, unix.LOCK_SH)
	switch {
	case err == nil:
		p.held = append(p.held, file)
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EWOULDBLOCK):
		return err
	}
	return nil // it is not one to be removed
}

// create makes a mount point.
func create(target string, isDir bool, earlier []container.Mount) error {
	dir := target
	if !isDir {
		dir = filepath.Dir(dir)
	}
	made := mark
	if inside(dir, earlier) {
		made = func(string) {}
	}
	if err := mkdirAll(dir, made); err != nil || isDir {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	made(target)
	return file.Close()
}

// inside reports whether what is made at the path lies in one of the mounts.
func inside(path string, mounts []container.Mount) bool {
	for _, err := os.Stat(path); err != nil && path != filepath.Dir(path); _, err = os.Stat(path) {
		path = filepath.Dir(path)
	}
	return slices.ContainsFunc(mounts, func(m container.Mount) bool { return within(resolved(path), resolved(m.Target)) })
}

// mkdirAll is os.MkdirAll that tells what it made.
func mkdirAll(dir string, made func(string)) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: dir, Err: unix.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := mkdirAll(filepath.Dir(dir), made); err != nil {
		return err
	}
	err = os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		made(dir)
	}
	return err
}

// release removes the mount points of a run that has ended, with the directories
// that were made on the way to them, but for those that other runs still need.
func release(mounts []container.Mount) {
	for _, m := range slices.Backward(mounts) {
		for path := m.Target; discard(path); path = filepath.Dir(path) {
		}
	}
}

// discard removes a mount point that nobody uses. It reports whether nothing is
// at the path any more.
func discard(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if !isMarked(path) {
		return false
	}
	file, err := flock.Try(path, unix.LOCK_EX)
	for range flock.Attempts {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(time.Millisecond)
		file, err = flock.Try(path, unix.LOCK_EX)
	}
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return info.Size() == 0 && !mounted(path) && unix.Unlink(path) == nil
	}
	if names, _ := file.Readdirnames(1); len(names) > 0 {
		return false
	}
	return !mounted(path) && unix.Rmdir(path) == nil
}

// mounted reports whether the path is a mount point for some process of the
// machine. Where it is one for this process, the kernel does not let it be removed.
// The youngest processes, which are last in /proc, come first: where many runs
// need the path, one of them answers at once.
func mounted(path string) bool {
	view := func(proc string) (string, error) {
		space, err := os.Readlink(proc + "/ns/mnt")
		if err != nil {
			return "", err
		}
		root, err := os.Readlink(proc + "/root")
		return space + root, err
	}
	seen := map[string]bool{}
	if own, err := view("/proc/self"); err == nil {
		seen[own] = true
	}
	for _, name := range slices.Backward(namesIn("/proc")) {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		proc := "/proc/" + name
		if v, err := view(proc); err == nil {
			if seen[v] {
				continue
			}
			seen[v] = true
		}
		table, _ := os.ReadFile(proc + "/mountinfo")
		for line := range strings.Lines(string(table)) {
			if fields := strings.Fields(line); len(fields) > 4 && unescape.Replace(fields[4]) == path {
				return true
			}
		}
	}
	return false
}

// namesIn are the names in a directory as the system lists them.
func namesIn(path string) []string {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return names
}

// unescape reads a path of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
