// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// source is what a mount shows. Where programs can change the way there, it is held.
type source struct {
	container.Mount
	held int // a mount that is nowhere yet, or -1
}

// takeSource finds what a mount shows. scratch is a directory of the run.
func takeSource(m container.Mount, scratch string) (*source, error) {
	s := &source{Mount: m, held: -1}
	var err error
	switch {
	case len(m.Layers) > 0:
		s.held, err = takeUnion(m, scratch)
	case m.Base != "":
		s.held, err = takeBelow(m)
	default:
		_, err = os.Stat(m.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", m.Source, err)
	}
	return s, nil
}

// shown is the mount with a path for what is held.
func (s *source) shown() container.Mount {
	m := s.Mount
	if s.held >= 0 {
		m.Source = fmt.Sprintf("/proc/thread-self/fd/%d", s.held)
	}
	return m
}

// bind makes it appear at its target.
func (s *source) bind() error {
	if s.held < 0 {
		return bind(s.Mount)
	}
	if err := unix.MoveMount(s.held, "", unix.AT_FDCWD, s.Target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", s.Source, err)
	}
	return nil
}

func (s *source) close() {
	if s.held >= 0 {
		unix.Close(s.held)
	}
}

// take copies the mount of an open file, with attributes of its own.
func take(fd int, flags uint, attributes uint64) (int, error) {
	held, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|flags)
	if err != nil || attributes == 0 {
		return held, err
	}
	if err := unix.MountSetattr(held, "", unix.AT_EMPTY_PATH|flags, &unix.MountAttr{Attr_set: attributes}); err != nil {
		unix.Close(held)
		return -1, err
	}
	return held, nil
}

// takeBelow takes a path in a volume.
func takeBelow(m container.Mount) (int, error) {
	rel, ok := strings.CutPrefix(m.Source, strings.TrimSuffix(m.Base, "/")+"/")
	if !ok {
		return -1, errors.New("it is not in its volume")
	}
	fd, err := openBelow(m.Base, rel, unix.RESOLVE_BENEATH)
	if errors.Is(err, unix.EXDEV) {
		err = errors.New("a link leads out of the volume")
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	var attributes uint64
	if m.ReadOnly {
		attributes = unix.MOUNT_ATTR_RDONLY
	}
	return take(fd, unix.AT_RECURSIVE, attributes)
}

// openBelow opens a path in a directory, for its path only.
func openBelow(dir, path string, resolve uint64) (int, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	for {
		fd, err := unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS})
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) { // a rename elsewhere
			return fd, err
		}
	}
}

// takeUnion takes a path in the union of a mount's layers.
func takeUnion(m container.Mount, scratch string) (held int, err error) {
	at := filepath.Join(scratch, "union")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return -1, err
	}
	if err := mountUnion(at, filepath.Join(scratch, "nothing"), m.Layers); err != nil {
		return -1, err
	}
	defer func() {
		if wrong := unix.Unmount(at, unix.MNT_DETACH); err == nil {
			err = wrong
		}
	}()
	fd, err := openBelow(at, filepath.Join("/", m.Source), unix.RESOLVE_IN_ROOT)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return take(fd, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}
