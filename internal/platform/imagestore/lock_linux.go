// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// syncer makes a file system's contents durable. Callers that come while one sync runs share the next.
type syncer struct {
	run  sync.Mutex
	mu   sync.Mutex
	next *syncBatch
}

type syncBatch struct {
	done chan struct{}
	err  error
}

// sync returns when everything is durable that was written to the file system of dir before the call.
func (s *syncer) sync(dir string) error {
	s.mu.Lock()
	b := s.next
	leader := b == nil
	if leader {
		b = &syncBatch{done: make(chan struct{})}
		s.next = b
	}
	s.mu.Unlock()
	if !leader {
		<-b.done
		return b.err
	}
	s.run.Lock()
	defer s.run.Unlock()
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	b.err = syncFS(dir)
	close(b.done)
	return b.err
}

func syncFS(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: dir, Err: err}
	}
	return nil
}

// probe finds out what the process may do in a directory.
func probe(dir string) (format, error) {
	f := format{Version: formatVersion}
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(tmp)
	if err := unix.Setxattr(tmp, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		f.UserXattr = true
		if err := unix.Setxattr(tmp, "user.overlay.opaque", []byte("y"), 0); err != nil {
			return f, fmt.Errorf("its file system has no extended attributes, which images need: %w", err)
		}
	}
	if err := unix.Mknod(filepath.Join(tmp, "whiteout"), unix.S_IFCHR, 0); err != nil {
		return f, fmt.Errorf("its file system has no whiteouts, which images need (for ordinary users since Linux 5.8): %w", err)
	}
	owned := filepath.Join(tmp, "owned")
	if err := os.WriteFile(owned, nil, 0o600); err != nil {
		return f, err
	}
	// In a user namespace with a few IDs, images' other owners cannot be kept: then none are.
	f.Owners = !f.UserXattr && os.Lchown(owned, 1, 1) == nil
	f.Devices = unix.Mknod(filepath.Join(tmp, "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) == nil
	return f, nil
}

// flock locks an open file that nobody else has locked.
func flock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// openPath opens a directory that may be unreadable.
func openPath(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrPermission) {
		return os.OpenFile(dir, unix.O_PATH, 0)
	}
	return f, err
}
