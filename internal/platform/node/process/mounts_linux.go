// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// mountAll makes the mounts in the calling thread's new mount namespace. Mounts
// of the host still appear in it later, but nothing of it on the host.
// The mount points that this needs on the host are in points. scratch is a directory of
// the run.
func (r *Runtime) mountAll(mounts []container.Mount, scratch string, points *mountpoints) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("cannot detach the mounts of the host: %w", err)
	}
	covered, err := r.coverSecrets(mounts, points)
	if err != nil {
		return fmt.Errorf("cannot create mount points for secrets: %w", err)
	}
	for i, m := range mounts {
		from, err := takeSource(m, scratch)
		if err == nil {
			covered, err = r.place(from.shown(), covered, mounts[:i], points)
			if err == nil {
				err = from.bind()
			}
			from.close()
		}
		if err == nil { // what it hides needs no protection
			covered = slices.DeleteFunc(covered, func(c container.Mount) bool { return within(c.Target, resolved(m.Target)) })
		}
		if err != nil && !m.Optional {
			return &container.StartError{Reason: "ContainerCannotRun", Code: 128, Err: fmt.Errorf("cannot mount a volume at %s: %w", m.Target, err)}
		}
	}
	for _, c := range covered {
		if err := uncover(c); err != nil {
			return fmt.Errorf("cannot protect mount points in %s: %w", c.Target, err)
		}
	}
	return nil
}

// bind makes the source appear at the target. A read-only bind needs a second
// step, which keeps the flags that the file system already had.
func bind(m container.Mount) error {
	if err := unix.Mount(m.Source, m.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", m.Source, err)
	}
	if !m.ReadOnly {
		return nil
	}
	var has unix.Statfs_t
	if err := unix.Statfs(m.Target, &has); err != nil {
		return fmt.Errorf("look at %s: %w", m.Target, err)
	}
	keep := uintptr(has.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if err := unix.Mount("", m.Target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|keep, ""); err != nil {
		return fmt.Errorf("make read-only: %w", err)
	}
	return nil
}

// resolved is a path without symbolic links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// within reports whether path is dir or lies in it. Neither has symbolic links.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
