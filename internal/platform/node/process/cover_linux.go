// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// coverEntries bounds how much a covered directory may hold: each entry is a mount.
const coverEntries = 1000

// cover gives the calling thread's mount namespace a directory of its own in place of dir, with
// what dir holds, so that mount points can be made in it and not on the host.
// It returns the mount that it made, at a path without symbolic links. uncover ends the making.
func (r *Runtime) cover(dir string) (container.Mount, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return container.Mount{}, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) && !passable(dir) {
		entries, err = nil, nil // to this user it is as good as empty
	}
	if err == nil && len(entries) > coverEntries {
		err = fmt.Errorf("%s has more than %d entries", dir, coverEntries)
	}
	if err != nil {
		return container.Mount{}, err
	}
	host, err := os.OpenFile(dir, unix.O_PATH, 0)
	if err != nil {
		return container.Mount{}, err
	}
	defer host.Close()
	from, at := fmt.Sprintf("/proc/thread-self/fd/%d", host.Fd()), dir
	if dir == "/" { // nothing that is mounted over it is seen: it is made elsewhere, and changed to
		from, at = "/", r.cfg.Dir
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=1m"); err != nil {
		return container.Mount{}, fmt.Errorf("cover %s: %w", dir, err)
	}
	for _, e := range entries {
		if err = copyEntry(filepath.Join(from, e.Name()), filepath.Join(at, e.Name()), e.Type()); err != nil {
			break
		}
	}
	if err == nil && dir == "/" {
		err = changeRoot(at)
	}
	if err != nil { // a run that does without the mount sees what was there
		return container.Mount{}, errors.Join(fmt.Errorf("cover %s: %w", dir, err), unix.Unmount(at, unix.MNT_DETACH))
	}
	return container.Mount{Source: at, Target: dir}, nil
}

// passable reports whether this user can reach the content of a directory. For
// root's home usually nobody else can.
func passable(dir string) bool {
	_, err := os.Stat(dir + "/.")
	return err == nil
}

// copyEntry makes the entry at from appear at to, unless it has since
// disappeared.
func copyEntry(from, to string, kind fs.FileMode) error {
	switch kind {
	case fs.ModeSymlink:
		target, err := os.Readlink(from)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case fs.ModeDir:
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
	}
	err := bind(container.Mount{Source: from, Target: to})
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(to)
	}
	return err
}

// changeRoot makes a mount the root directory of the calling thread's mount namespace.
func changeRoot(to string) error {
	if err := unix.Chdir(to); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old root now lies over the new one
		return fmt.Errorf("change the root directory: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root directory: %w", err)
	}
	if err := unix.Unmount(to, unix.MNT_DETACH); err != nil { // the new root's copy of itself
		return fmt.Errorf("clear %s: %w", to, err)
	}
	return unix.Chdir("/")
}

// uncover makes a covering directory what the one beneath is for this user: one
// in which nothing can be made.
func uncover(m container.Mount) error {
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	return unix.Mount("", m.Target, "", flags, "")
}

// place makes the target of a mount. What this user may not make on the host is
// made in a cover of the deepest directory on its way that exists, which is
// returned with those that were there before.
func (r *Runtime) place(m container.Mount, covered, earlier []container.Mount, points *mountpoints) ([]container.Mount, error) {
	inside := append(append([]container.Mount(nil), covered...), earlier...)
	err := points.ensure(m, inside)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
		return covered, err
	}
	dir := filepath.Dir(m.Target)
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
		dir = filepath.Dir(dir)
	}
	cover, err := r.cover(dir)
	if err != nil {
		return covered, err
	}
	covered = append(covered, cover)
	return covered, points.ensure(m, append(inside, cover))
}
