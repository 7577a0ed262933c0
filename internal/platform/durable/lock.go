// SPDX-License-Identifier: Apache-2.0

//go:build unix

package durable

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockInterval is how often a lock of another holder is tried.
const lockInterval = 20 * time.Millisecond

// ErrLocked says that somebody else holds a lock.
var ErrLocked = errors.New("it is in use")

// Lock locks the file or directory at path, which is made as a file if it is missing. Goroutines of
// one process exclude each other like processes. Closing the result unlocks.
func Lock(ctx context.Context, path string) (io.Closer, error) {
	return wait(ctx, func() (io.Closer, error) { return try(path, os.O_CREATE, unix.LOCK_EX) })
}

// Share is Lock for holders that do not exclude each other, only those of Lock.
func Share(ctx context.Context, path string) (io.Closer, error) {
	return wait(ctx, func() (io.Closer, error) { return try(path, os.O_CREATE, unix.LOCK_SH) })
}

// LockDir is Lock for a directory, which is made if it is missing.
func LockDir(ctx context.Context, path string) (io.Closer, error) {
	return wait(ctx, func() (io.Closer, error) {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		l, err := TryLock(path)
		if errors.Is(err, os.ErrNotExist) { // removed meanwhile
			err = ErrLocked
		}
		return l, err
	})
}

// TryLock locks what exists at path, or fails with [ErrLocked].
func TryLock(path string) (io.Closer, error) { return try(path, 0, unix.LOCK_EX) }

func wait(ctx context.Context, lock func() (io.Closer, error)) (io.Closer, error) {
	for {
		l, err := lock()
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockInterval):
		}
	}
}

func try(path string, flags, how int) (io.Closer, error) {
	for {
		mode := os.O_RDONLY
		if flags&os.O_CREATE != 0 {
			mode = os.O_RDWR
		}
		f, err := os.OpenFile(path, mode|flags, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, ErrLocked
			}
			return nil, err
		}
		// A lock on what was removed meanwhile excludes nobody.
		held, err := f.Stat()
		if err == nil {
			var now os.FileInfo
			if now, err = os.Stat(path); err == nil && os.SameFile(held, now) {
				return f, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
}
