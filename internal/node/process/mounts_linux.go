// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/node/container"
)

// mountAll makes the mounts in the calling thread's new mount namespace. Mounts
// of the host still appear in it later, but nothing of it on the host.
func (r *Runtime) mountAll(mounts []container.Mount) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("cannot detach the mounts of the host: %w", err)
	}
	covered, err := r.coverSecrets(mounts)
	if err != nil {
		return fmt.Errorf("cannot make mount points of secrets: %w", err)
	}
	for i, m := range mounts {
		if _, err = os.Stat(m.Source); err == nil {
			covered, err = r.place(m, covered, mounts[:i])
		}
		if err == nil {
			err = bind(m)
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

// ensure makes the target of a mount where it is missing: a directory for a
// directory, an empty file for a file. What it makes on the host, and not
// inside one of the earlier mounts, is remembered.
func (p *mountpoints) ensure(m container.Mount, earlier []container.Mount) error {
	if _, err := os.Stat(m.Target); err == nil {
		return nil
	}
	source, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	var made []string
	dir := m.Target
	if !source.IsDir() {
		dir = filepath.Dir(dir)
	}
	if err := mkdirAll(dir, &made); err != nil {
		return err
	}
	if !source.IsDir() {
		file, err := os.OpenFile(m.Target, os.O_CREATE|os.O_RDONLY, 0o644)
		if err != nil {
			return err
		}
		file.Close()
		made = append(made, m.Target)
	}
	for _, e := range earlier {
		if within(resolved(m.Target), resolved(e.Target)) {
			return nil
		}
	}
	return p.remember(made)
}

// resolved is a path without symbolic links, as far as it is there.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// within tells whether path is dir or lies in it. Neither has symbolic links.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// mkdirAll is os.MkdirAll that tells what it made.
func mkdirAll(dir string, made *[]string) error {
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
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	*made = append(*made, dir)
	return nil
}

// mounted tells which paths are mount points for some process of the machine.
func mounted() map[string]bool {
	found := map[string]bool{}
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, table := range tables {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 4 {
				found[fields[4]] = true
			}
		}
	}
	return found
}
