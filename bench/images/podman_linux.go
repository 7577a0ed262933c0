// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// podman returns how to call podman with a storage of its own.
func podman(dir, driver string, flags ...string) func(...string) []string {
	return func(args ...string) []string {
		return slices.Concat([]string{
			"podman", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--tmpdir", filepath.Join(dir, "tmp"),
			"--storage-driver", driver,
		}, flags, args)
	}
}

// removeAll removes a directory with what podman has mounted in it.
func removeAll(dir string) error {
	if err := unmountAll(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// unmountAll unmounts what is mounted below a directory.
func unmountAll(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			if err := unix.Unmount(fields[1], unix.MNT_DETACH); err != nil {
				return fmt.Errorf("cannot unmount %s: %w", fields[1], err)
			}
		}
	}
	return nil
}

// hidden is a thread that does not see the unified hierarchy of cgroups beside the old
// ones, with which crun refuses to run. Where there are not both, it sees all.
type hidden struct {
	work chan func()
	err  error
	done chan struct{}
}

func newHidden() *hidden {
	h := &hidden{make(chan func()), nil, make(chan struct{})}
	go h.run()
	return h
}

func (h *hidden) run() {
	runtime.LockOSThread() // to its end: the thread has another mount namespace
	defer close(h.done)
	h.err = unix.Unshare(unix.CLONE_NEWNS)
	if h.err == nil {
		h.err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	}
	if h.err == nil {
		err := unix.Unmount("/sys/fs/cgroup/unified", unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			h.err = fmt.Errorf("cannot unmount the unified cgroups: %w", err)
		}
	}
	for f := range h.work {
		f()
	}
}

// in has the thread do something; the processes that it starts see what it sees.
func (h *hidden) in(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		result := make(chan error)
		h.work <- func() {
			err := h.err
			if err == nil {
				err = do(ctx)
			}
			result <- err
		}
		return <-result
	}
}

func (h *hidden) close() {
	close(h.work)
	<-h.done
}
