// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
	"diwan.dev/diwan/internal/platform/node/thread"
)

// Allowed returns why this machine, or this user, cannot run containers of images, and the
// remedy; nil if they can. A process of an ordinary user has entered its user namespace
// (rootless.Enter).
func Allowed() error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	release := unix.ByteSliceToString(name.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err == nil && (major < 5 || major == 5 && minor < 12) {
		return fmt.Errorf("cannot run containers of images on Linux %s: they need 5.12 or newer", release)
	}
	if os.Geteuid() != 0 {
		if err := rootless.Allowed(); err != nil {
			return fmt.Errorf("cannot run containers of images: %w", err)
		}
		return errors.New("cannot run containers of images: diwan is not in its user namespace")
	}
	err := thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP); err != nil {
			return err
		}
		return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	})
	if err != nil {
		return fmt.Errorf("cannot run containers of images: this process may not make namespaces (%w); if it is in a container, run that as privileged", err)
	}
	return nil
}

// Overlay returns why layers cannot be mounted over each other in the runtime's directory:
// it mounts some, changes and removes files. Runs then have copies of their image, which
// costs time and space. It looks once.
func (r *Runtime) Overlay() error {
	r.looked.Do(func() {
		if r.cfg.NoOverlay {
			r.overlay = errors.New("the configuration says so")
			return
		}
		r.overlay = tryOverlay(r.cfg.Dir, r.ordinary)
	})
	return r.overlay
}

func tryOverlay(dir string, ordinary bool) error {
	stale, _ := filepath.Glob(filepath.Join(dir, "probe-*"))
	for _, dir := range stale {
		os.RemoveAll(dir)
	}
	dir, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	lower, scratch, at := filepath.Join(dir, "lower"), filepath.Join(dir, "scratch"), filepath.Join(dir, "root")
	for _, made := range []string{filepath.Join(lower, "dir", "deep"), scratch, at} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"changed", "removed"} {
		if err := os.WriteFile(filepath.Join(lower, name), []byte("lower"), 0o644); err != nil {
			return err
		}
	}
	err = thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := early.Overlay(at, scratch, []string{lower}, ordinary); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(at, "changed"), []byte("upper"), 0o644); err != nil {
			return err
		}
		return errors.Join(os.Remove(filepath.Join(at, "removed")), os.RemoveAll(filepath.Join(at, "dir")), os.Mkdir(filepath.Join(at, "dir"), 0o755))
	})
	if err == nil {
		text, _ := os.ReadFile(filepath.Join(lower, "changed"))
		_, gone := os.Stat(filepath.Join(lower, "removed"))
		if string(text) != "lower" || gone != nil {
			err = errors.New("a layer below has changed")
		}
	}
	if err != nil {
		return fmt.Errorf("the file system of %s does not carry overlays: %w", filepath.Dir(dir), err)
	}
	return nil
}
